import { EventQueue } from "../../src/async/event-queue.ts";
import type { Engine } from "../../src/engine/engine.ts";
import type { GenerationEvent, GenerationRequest } from "../../src/engine/protocol/generation.ts";

/** A generation to be read event by event. It begins with the first step; leaving the loop cancels it. */
export function generated(
  engine: Pick<Engine, "generate">,
  request: GenerationRequest,
  signal: AbortSignal,
): AsyncGenerator<GenerationEvent, void, undefined> {
  return pulled((onEvent, abort) => engine.generate(request, onEvent, abort), signal);
}

/** Yields the values that a function passes to its callback, one at a time. */
export async function* pulled<Value>(
  run: (onValue: (value: Value) => void, signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): AsyncGenerator<Value, void, undefined> {
  const left = new AbortController();
  const values = new EventQueue<Value>(Number.POSITIVE_INFINITY, () => 0);
  const over = run((value) => void values.push(value), AbortSignal.any([signal, left.signal])).then(
    () => values.end(),
    (error: unknown) => values.end(error),
  );
  // After an abort, earlier values that were not read yet are of no use.
  signal.addEventListener("abort", () => values.clear(signal.reason), { once: true });
  try {
    yield* values;
  } finally {
    left.abort(new Error("the reader has left"));
    await over;
  }
}
