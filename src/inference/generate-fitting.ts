import { abortable } from "../async/abortable.ts";
import type { Engine } from "../engine/engine.ts";
import type { GenerationEvent, GenerationRequest } from "../engine/protocol/generation.ts";
import { ServiceError } from "../errors/service-error.ts";

/** A further try is as expensive as the first; where three fail, the next would hardly succeed. */
const MAX_TRIES = 3;

/** Another try of an answer without chance would be the same answer. */
const LEAST_TEMPERATURE = 0.7;

/**
 * Generates an answer of which a grammar cannot say all that it must be. It is held back until it is complete and fits; one
 * that does not is generated again with another seed. What was cut off, or ended by a stop sequence, is passed on. The tokens of
 * each try are told at once.
 * @param check says what is wrong with the events of a complete answer
 * @param failedTries before this call; what the request gives the answer to begin with belongs to the next one
 * @throws ServiceError inference_failed when no try fits
 */
export async function generateFitting(
  engine: Pick<Engine, "generate">,
  request: GenerationRequest,
  check: (events: readonly GenerationEvent[]) => Promise<string | undefined>,
  onEvent: (event: GenerationEvent) => void,
  signal: AbortSignal,
  failedTries = 0,
): Promise<void> {
  const first = Math.min(failedTries, MAX_TRIES - 1);
  let failure: string | undefined;
  for (let tries = first; tries < MAX_TRIES; tries += 1) {
    const held: GenerationEvent[] = [];
    const take = (event: GenerationEvent): void => {
      const isProgress = event.type === "start" || event.type === "prompt-progress";
      if (event.type === "tokens") onEvent({ ...event, failedTries: tries });
      else if (!isProgress) held.push(event);
      else if (tries === first) onEvent(event);
    };
    const { given: _given, ...fresh } = request;
    await engine.generate(again(tries === first ? request : fresh, tries), take, signal);
    failure = isWhole(held.at(-1)) ? await abortable(check(held), signal) : undefined;
    if (failure === undefined) {
      held.forEach(onEvent);
      return;
    }
  }
  throw new ServiceError(
    "inference_failed",
    `The model's answer did not fit the schema in ${MAX_TRIES} tries: ${failure}. Try again, describe it in the prompt, or simplify the schema.`,
  );
}

function again(request: GenerationRequest, tries: number): GenerationRequest {
  if (tries === 0) return request;
  const { temperature = 0, seed } = request.sampling;
  return {
    ...request,
    sampling: {
      ...request.sampling,
      temperature: Math.max(temperature, LEAST_TEMPERATURE),
      ...(seed !== undefined && { seed: (seed + tries) >>> 0 }),
    },
  };
}

function isWhole(last: GenerationEvent | undefined): boolean {
  return last?.type === "done" && last.reason !== "length" && last.stopSequence === undefined;
}
