import type { Sampling } from "../engine/protocol/generation.ts";
import { AnswerFold, type Answer } from "./collect-answer.ts";
import type { Inference, InferenceEvent, InferenceRequest } from "./inference.ts";

/** Event with the index of its choice; absent: 0. */
export type ChoiceEvent = InferenceEvent & { readonly choice?: number };

interface ChoicesStream {
  readonly model: string;
  /** As in {@link InferenceStream}. */
  readonly warnings: readonly string[];
  /** As in {@link InferenceStream}. */
  readonly sampling: Sampling;
  readonly events: AsyncIterableIterator<ChoiceEvent>;
}

/**
 * Runs several requests as the choices of one answer. Resolves when the first is accepted; the others take slots as
 * they become free, so two such answers cannot deadlock. The first failure ends all choices, and so does leaving the
 * loop.
 * @param parallel most choices that run or wait at once; more than the model's slots would only fill its queue
 */
export async function generateChoices(
  inference: Pick<Inference, "generate">,
  requests: readonly InferenceRequest[],
  parallel: number,
  signal: AbortSignal,
): Promise<ChoicesStream> {
  const [first, ...others] = requests;
  if (!first) throw new RangeError("an answer has at least one choice");
  if (others.length === 0) return await inference.generate(first, signal);
  const stop = new AbortController();
  const all = AbortSignal.any([signal, stop.signal]);
  const choiceOf = await inference.generate(first, all);
  const { model, warnings, sampling, events } = choiceOf;
  const sources = [events, ...others.map((request) => startChoice(inference, { ...request, choiceOf }, all))];
  const end = (): void => stop.abort(new Error("the answer has ended"));
  return { model, warnings, sampling, events: mergeChoices(sources, parallel, end) };
}

/** Collects the choices of an answer, in order. */
export async function collectChoices(events: AsyncIterable<ChoiceEvent>, count: number): Promise<Answer[]> {
  const folds = Array.from({ length: count }, () => new AnswerFold());
  for await (const event of events) folds[event.choice ?? 0]?.add(event);
  return folds.map((fold) => fold.finish());
}

async function* startChoice(
  inference: Pick<Inference, "generate">,
  request: InferenceRequest,
  signal: AbortSignal,
): AsyncGenerator<InferenceEvent, void, undefined> {
  const { events } = await inference.generate(request, signal);
  yield* events;
}

interface Arrival {
  readonly choice: number;
  readonly result: IteratorResult<InferenceEvent, void>;
}

/** Yields the events of all sources as they arrive. `stop` is called when the loop ends for any reason. */
async function* mergeChoices(
  sources: readonly AsyncIterator<InferenceEvent, void>[],
  parallel: number,
  stop: () => void,
): AsyncGenerator<ChoiceEvent, void, undefined> {
  const pending = new Map<number, Promise<Arrival>>();
  const pull = (choice: number): void => {
    const source = sources[choice];
    if (!source) return;
    const arrival = source.next().then((result) => ({ choice, result }));
    // A rejection may come while the reader handles another choice; the race below still throws it.
    arrival.catch(() => undefined);
    pending.set(choice, arrival);
  };
  try {
    let started = 0;
    while (started < Math.min(parallel, sources.length)) pull(started++);
    while (pending.size > 0) {
      const { choice, result } = await Promise.race(pending.values());
      pending.delete(choice);
      if (result.done) {
        if (started < sources.length) pull(started++);
        continue;
      }
      pull(choice);
      yield { ...result.value, choice };
    }
  } finally {
    stop();
    await Promise.allSettled(pending.values());
    await Promise.allSettled(sources.map(async (source) => await source.return?.()));
  }
}
