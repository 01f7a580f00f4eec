import type { GenerationEvent, Timings, Usage } from "../engine/protocol/generation.ts";
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
    const text = textOf(event);
    if (text === undefined) return [event];
    firstAt ??= now();
    usage.completionTokens += 1;
    if (event.type === "reasoning-delta") usage.reasoningTokens += 1;
    if (!finder.add(text)) return [event];
    isOver = true;
    onRepetition();
    return [event, ended(usage, { promptMs: firstAt - startedAt, completionMs: now() - firstAt })];
  };
}

function textOf(event: GenerationEvent): string | undefined {
  if (event.type === "text-delta" || event.type === "reasoning-delta") return event.text;
  return event.type === "tool-call-delta" ? event.arguments : undefined;
}

function ended(usage: Usage, timings: Timings): GenerationEvent {
  return { type: "done", reason: "length", usage: { ...usage }, timings };
}
