import { abortable } from "../async/promises.ts";
import type { Engine } from "../engine/engine.ts";
import {
  continuesLast,
  type GenerationEvent,
  type GenerationInput,
  type GenerationRequest,
} from "../engine/protocol/generation.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { InferenceRequest } from "./inference.ts";
import { dropLateEnd, splitReasoning } from "./reasoning-parser.ts";
import type { ResolvedGeneration } from "./resolve-generation.ts";
import {
  dropEmptyTokens,
  dropReasoningEcho,
  dropTextTags,
  dropUnseenLogprobs,
  type EventReader,
  firstCallOnly,
  readAll,
  tidyAnswer,
} from "./stream-filters.ts";
import { readForcedCall, readOfferedCall } from "./tool-calls/forced-calls.ts";
import { splitToolCalls } from "./tool-calls/tagged-call-parser.ts";
import { checkCalls } from "./tool-calls/validate-calls.ts";
import { readWrittenCalls } from "./tool-calls/written-call-parser.ts";

/** Generates an answer; one of which its grammar does not say all is held back until it fits. */
export function runGeneration(
  engine: Pick<Engine, "generate">,
  resolved: ResolvedGeneration,
  onEvent: (event: GenerationEvent) => void,
  signal: AbortSignal,
): Promise<void> {
  const { request, check, callChecks, failedTries } = resolved;
  if (!check && callChecks.size === 0) return engine.generate(request, onEvent, signal);
  const failureOf = async (events: readonly GenerationEvent[]): Promise<string | undefined> =>
    (await check?.(textOf(events))) ??
    (await checkCalls(readAll(events, readersOf(resolved, {})), callChecks));
  return generateFitting(engine, request, failureOf, onEvent, signal, failedTries);
}

function textOf(events: readonly GenerationEvent[]): string {
  return events.map((event) => (event.type === "text-delta" ? event.text : "")).join("");
}

/** The readers of the engine's events according to the model's settings, in order. */
export function readersOf(
  { request, reasoningTags, limitedReasoning, calls, traits, isRaw }: ResolvedGeneration,
  { onTokens, onChosen, emptyTokens }: Pick<InferenceRequest, "onTokens" | "onChosen" | "emptyTokens">,
): EventReader[] {
  const readers: EventReader[] = [];
  if (onChosen) {
    readers.push((event) => {
      if (event.type !== "tokens") return [event];
      const { ids, replaced, failedTries } = event;
      onChosen({ ids, replaced, failedTries });
      return [];
    });
  }
  if (!isRaw && traits.echoedTags) readers.push(dropReasoningEcho(traits.echoedTags));
  if (request.logprobs !== undefined && !emptyTokens) readers.push(dropEmptyTokens());
  if (onTokens) {
    readers.push((event) => {
      if (event.type === "text-delta" && event.logprobs) onTokens(event.logprobs);
      return [event];
    });
  }
  if (request.logprobs !== undefined) readers.push(dropUnseenLogprobs());
  if (!isRaw) readers.push(tidyAnswer(traits.endOfTurn, goesOn(request.input)));
  if (!isRaw && traits.textTags) readers.push(dropTextTags(traits.textTags));
  if (reasoningTags) readers.push(splitReasoning(reasoningTags));
  if (limitedReasoning) readers.push(dropLateEnd(limitedReasoning));
  if (calls?.kind === "single") readers.push(firstCallOnly());
  else if (calls?.kind === "forced") readers.push(readForcedCall());
  else if (calls?.kind === "offered") readers.push(readOfferedCall(calls.names));
  else if (calls?.kind === "written") readers.push(readWrittenCalls(calls.format, calls));
  else if (calls) readers.push(splitToolCalls(calls.format, { parallel: calls.parallel }));
  return readers;
}

function goesOn(input: GenerationInput): boolean {
  return input.kind === "chat" && continuesLast(input);
}

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
