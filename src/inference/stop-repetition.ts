import type { GenerationEvent, Timings, Usage } from "../engine/protocol/generation.ts";
import { firstTokens, isPiece, tokenTexts } from "../engine/protocol/piece.ts";
import type { EventReader } from "./event-reader.ts";
import { RepetitionFinder } from "./repetition-finder.ts";

interface RepetitionOptions {
  /** Called once, when an answer is stopped. */
  readonly onRepetition: () => void;
  /** Milliseconds since any origin. */
  readonly now: () => number;
}

/**
 * Ends an answer that runs in circles, as if it had reached its length. Has to be the first reader, so that it sees every
 * token: text, reasoning and calls alike.
 */
export function stopRepetition({ onRepetition, now }: RepetitionOptions): EventReader {
  const finder = new RepetitionFinder();
  const startedAt = now();
  let firstAt: number | undefined;
  const usage = { promptTokens: 0, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0 };
  let isOver = false;
  return (event) => {
    if (isOver) return [];
    if (event.type === "prompt-progress") {
      usage.promptTokens = event.total;
      usage.cachedTokens = event.cached ?? 0;
    }
    if (!isPiece(event)) return [event];
    firstAt ??= now();
    for (const [at, text] of tokenTexts(event).entries()) {
      usage.completionTokens += 1;
      if (event.type === "reasoning-delta") usage.reasoningTokens += 1;
      if (!finder.add(text)) continue;
      isOver = true;
      onRepetition();
      const timings = { promptMs: firstAt - startedAt, completionMs: now() - firstAt };
      return [firstTokens(event, at + 1), ended(usage, timings)];
    }
    return [event];
  };
}

function ended(usage: Usage, timings: Timings): GenerationEvent {
  return { type: "done", reason: "length", usage: { ...usage }, timings };
}
