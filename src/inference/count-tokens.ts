import type { Inference, InferenceRequest } from "./inference.ts";

/**
 * Counts the tokens of a request's prompt, including template, tools and images. The request is started and cancelled at
 * llama.cpp's first progress report, which has the exact number and comes with the prompt's first step, so that a long
 * prompt is not computed. It takes a slot for that time.
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
