import type { Inference, InferenceRequest } from "./inference.ts";

/**
 * Counts the tokens that a request's prompt has for its model: template, tools and images included. The request is
 * begun and left at llama.cpp's first report of progress, which names the exact number and comes with the first step
 * of the prompt; so a long prompt is not worked through. It takes a slot for that time.
 */
export async function countTokens(
  inference: Pick<Inference, "generate">,
  request: InferenceRequest,
  signal: AbortSignal,
): Promise<number> {
  const { events } = await inference.generate({ ...request, maxTokens: 1 }, signal);
  let tokens = 0;
  for await (const event of events) {
    if (event.type === "prompt-progress") return event.total;
    if (event.type === "done") tokens = event.usage.promptTokens;
  }
  return tokens;
}
