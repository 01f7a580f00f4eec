import type { Engine } from "../engine/engine.ts";
import { ANSWER_PROGRESS_TOKENS } from "../engine/protocol/generation.ts";
import type { GenerationEvent, GenerationRequest } from "../engine/protocol/generation.ts";
import type { Permit } from "./admission-queue.ts";
import { mostTokens, neededTokens } from "./reserved-tokens.ts";

type AnswerProgress = Extract<GenerationEvent, { type: "answer-progress" }>;

/**
 * An answer ends when so many tokens are left of what it holds: until the next report, and until the engine has confirmed
 * the end, it goes on.
 */
const END_TOKENS = 2 * ANSWER_PROGRESS_TOKENS;

/** It takes more so much earlier, so that the next caller is not admitted to room that it is about to need. */
const AHEAD_TOKENS = 4 * ANSWER_PROGRESS_TOKENS;

type GeneratingEngine = Pick<Engine, "generate" | "info" | "spec">;

/** An engine whose answers keep to a permit. */
export function inRoom(engine: GeneratingEngine, permit: Permit): Pick<Engine, "generate"> {
  return {
    generate: (request, onEvent, signal) => generateInRoom(engine, permit, request, onEvent, signal),
  };
}

/**
 * Generates an answer within the tokens of context that its permit holds. The permit is corrected when the prompt has been
 * counted, and takes more as the answer grows. When there is no more, because other running answers hold it, the answer
 * ends with the reason "length".
 */
export async function generateInRoom(
  engine: GeneratingEngine,
  permit: Permit,
  request: GenerationRequest,
  onEvent: (event: GenerationEvent) => void,
  signal: AbortSignal,
): Promise<void> {
  const context = { ...engine.info, slots: engine.spec.slots };
  const full = new AbortController();
  let promptTokens = 0;
  let last: AnswerProgress | undefined;
  let isDone = false;

  const prompted = (total: number): void => {
    promptTokens = total;
    const needed = neededTokens(request, total, context);
    if (needed <= permit.tokens) return permit.resize(needed);
    // The prompt is there, whether it fits or not.
    if (total > permit.tokens) permit.resize(total);
    permit.grow(needed - permit.tokens);
  };
  const isFull = (tokens: number): boolean => {
    const most = mostTokens(request, promptTokens, context);
    const used = promptTokens + tokens;
    const wished = Math.min(most, used + AHEAD_TOKENS);
    if (wished <= permit.tokens || permit.grow(wished - permit.tokens)) return false;
    return used + END_TOKENS > permit.tokens;
  };
  const take = (event: GenerationEvent): void => {
    if (last) return;
    if (event.type === "answer-progress") {
      if (!isFull(event.usage.completionTokens)) return;
      last = event;
      full.abort(new Error("the context is full"));
      return;
    }
    if (event.type === "prompt-progress") prompted(event.total);
    isDone = event.type === "done";
    onEvent(event);
  };

  try {
    await engine.generate(request, take, AbortSignal.any([signal, full.signal]));
  } catch (error) {
    if (!last || signal.aborted) throw error;
  }
  if (last && !isDone) onEvent({ ...last, type: "done", reason: "length" });
}
