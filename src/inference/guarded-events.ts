import type { GenerationEvent } from "../engine/protocol/generation.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { InferenceEvent } from "./inference.ts";

type DoneEvent = Extract<GenerationEvent, { type: "done" }>;

export interface GuardedEventsOptions {
  /** The engine's own stream: ending it frees the engine. */
  source: AsyncGenerator<GenerationEvent, void, undefined>;
  /** `source` as the consumer is to see it. */
  events: AsyncGenerator<GenerationEvent, void, undefined>;
  /** Aborts with the client or with the deadline. */
  signal: AbortSignal;
  /** Called with the length of the prompt in tokens when the engine reports it. */
  onPrompt(tokens: number): void;
  /** Called once, when the engine has let go of the request: gives back the slot and the lease. */
  release(): void;
  /** Completes the last event; called once the generation is over. */
  finish(done: DoneEvent): InferenceEvent;
}

/**
 * The engine's events, such that what the request holds is given back exactly once and as soon as the engine
 * is done with it: at the last event, at an error, when the consumer leaves (even before its first step), and
 * when the signal aborts while nobody reads. The stream ends by `done` or throws.
 */
export function guardEvents(options: GuardedEventsOptions): AsyncGenerator<InferenceEvent, void, undefined> {
  const { source, events, signal } = options;
  let released: Promise<void> | undefined;
  const release = (): Promise<void> => {
    released ??= endSource(source).finally(() => {
      signal.removeEventListener("abort", onAbort);
      options.release();
    });
    return released;
  };
  const onAbort = () => void release();
  signal.addEventListener("abort", onAbort, { once: true });

  async function* run(): AsyncGenerator<InferenceEvent, void, undefined> {
    try {
      for await (const event of events) {
        if (event.type === "done") {
          await release();
          yield options.finish(event);
          return;
        }
        if (event.type === "prompt-progress") options.onPrompt(event.total);
        yield event;
      }
      signal.throwIfAborted();
      throw new ServiceError("inference_failed", "The engine ended the answer before it was complete.");
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    } finally {
      await release();
    }
  }

  const generator = run();
  const leave = generator.return.bind(generator);
  // Returning a generator that was never started runs none of its code.
  generator.return = async (value) => {
    await release();
    return leave(value);
  };
  return generator;
}

async function endSource(source: AsyncGenerator<unknown, void, undefined>): Promise<void> {
  try {
    await source.return();
  } catch {
    // Whoever reads the stream gets this error; here the source only has to be over.
  }
}
