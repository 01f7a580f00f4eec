import type { GenerationEvent, Usage } from "../engine/protocol/generation.ts";

/**
 * Ends a turn where its second tool call begins, so that the rest is not generated: some models write several though
 * they are told not to, and not every template has a grammar that would keep them from it. The engine's own counts come
 * at the end only, so those of the last event are counted and timed here: a piece is a token.
 * @param now milliseconds since any origin
 */
export async function* firstCallOnly(
  events: AsyncIterable<GenerationEvent>,
  now: () => number = () => performance.now(),
): AsyncGenerator<GenerationEvent, void, undefined> {
  const usage: Usage = { promptTokens: 0, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0 };
  const startedAt = now();
  let answeredAt = startedAt;
  for await (const event of events) {
    if (event.type === "tool-call-start" && event.index > 0) {
      const timings = { promptMs: answeredAt - startedAt, completionMs: now() - answeredAt };
      yield { type: "done", reason: "tool_calls", usage, timings };
      return;
    }
    if (event.type === "prompt-progress") {
      usage.promptTokens = event.total;
      answeredAt = now();
    } else if (event.type !== "start" && event.type !== "done") {
      usage.completionTokens += 1;
      if (event.type === "reasoning-delta") usage.reasoningTokens += 1;
    }
    yield event;
  }
}
