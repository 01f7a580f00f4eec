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
  dropNonTextLogprobs,
  type EventFilter,
  firstCallOnly,
  applyFilters,
  trimTemplateText,
} from "./stream-filters.ts";
import { readForcedCall, readOfferedCall } from "./tool-calls/forced-calls.ts";
import { splitToolCalls } from "./tool-calls/tagged-call-parser.ts";
import { checkCalls } from "./tool-calls/validate-calls.ts";
import { readWrittenCalls } from "./tool-calls/written-call-parser.ts";

/** Generates an answer. If its grammar does not enforce everything, the answer is buffered, checked, and retried. */
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
    (await checkCalls(applyFilters(events, filtersFor(resolved, {})), callChecks));
  return generateFitting(engine, request, failureOf, onEvent, signal, failedTries);
}

function textOf(events: readonly GenerationEvent[]): string {
  return events.map((event) => (event.type === "text-delta" ? event.text : "")).join("");
}

/** Returns the filters of the engine's events for a request, in order. */
export function filtersFor(
  { request, reasoningTags, limitedReasoning, calls, traits, isRaw }: ResolvedGeneration,
  {
    onLogprobs,
    continuation,
    emptyTokens,
  }: Pick<InferenceRequest, "onLogprobs" | "continuation" | "emptyTokens">,
): EventFilter[] {
  const readers: EventFilter[] = [];
  const onTokenIds = continuation?.onTokenIds;
  if (onTokenIds) {
    readers.push((event) => {
      if (event.type !== "tokens") return [event];
      const { ids, replaced, failedTries } = event;
      onTokenIds({ ids, replaced, failedTries });
      return [];
    });
  }
  if (!isRaw && traits.echoedTags) readers.push(dropReasoningEcho(traits.echoedTags));
  if (request.logprobs !== undefined && !emptyTokens) readers.push(dropEmptyTokens());
  if (onLogprobs) {
    readers.push((event) => {
      if (event.type === "text-delta" && event.logprobs) onLogprobs(event.logprobs);
      return [event];
    });
  }
  if (request.logprobs !== undefined) readers.push(dropNonTextLogprobs());
  if (!isRaw) readers.push(trimTemplateText(traits.endOfTurn, continuesMessage(request.input)));
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

function continuesMessage(input: GenerationInput): boolean {
  return input.kind === "chat" && continuesLast(input);
}

/** Limit on tries: each costs as much as the first, and after three failures another hardly succeeds. */
const MAX_TRIES = 3;

/** Minimum temperature of a retry: with greedy sampling it would yield the same answer. */
const MIN_RETRY_TEMPERATURE = 0.7;

/**
 * Generates an answer that a grammar alone cannot enforce. The answer is buffered until it is complete, and generated
 * again with another seed if it fails the check. Answers that were truncated, or ended by a stop sequence, are not
 * checked. Token ids of each try are reported at once.
 * @param check returns the problem with the events of a complete answer, or undefined
 * @param failedTries number of earlier tries on other machines; prefix tokens of the request belong to the next try
 *   only
 * @throws ServiceError inference_failed if no try passes
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
    const buffered: GenerationEvent[] = [];
    const collect = (event: GenerationEvent): void => {
      const isProgress = event.type === "start" || event.type === "prompt-progress";
      if (event.type === "tokens") onEvent({ ...event, failedTries: tries });
      else if (!isProgress) buffered.push(event);
      else if (tries === first) onEvent(event);
    };
    const { given: _given, ...fresh } = request;
    await engine.generate(retryOf(tries === first ? request : fresh, tries), collect, signal);
    failure = isComplete(buffered.at(-1)) ? await abortable(check(buffered), signal) : undefined;
    if (failure === undefined) {
      buffered.forEach(onEvent);
      return;
    }
  }
  throw new ServiceError(
    "inference_failed",
    `The model's answer did not fit the schema in ${MAX_TRIES} tries: ${failure}. Try again, describe it in the prompt, or simplify the schema.`,
  );
}

function retryOf(request: GenerationRequest, tries: number): GenerationRequest {
  if (tries === 0) return request;
  const { temperature = 0, seed } = request.sampling;
  return {
    ...request,
    sampling: {
      ...request.sampling,
      temperature: Math.max(temperature, MIN_RETRY_TEMPERATURE),
      ...(seed !== undefined && { seed: (seed + tries) >>> 0 }),
    },
  };
}

function isComplete(last: GenerationEvent | undefined): boolean {
  return last?.type === "done" && last.reason !== "length" && last.stopSequence === undefined;
}
