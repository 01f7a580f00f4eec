import type { Engine } from "../engine/engine.ts";
import { continuesLast, type GenerationEvent, type GenerationInput } from "../engine/protocol/generation.ts";
import { checkCalls } from "./call-checks.ts";
import { dropEmptyTokens } from "./drop-empty-tokens.ts";
import { dropLateEnd } from "./drop-late-end.ts";
import { dropReasoningEcho } from "./drop-reasoning-echo.ts";
import { dropTextTags } from "./drop-text-tags.ts";
import { dropUnseenLogprobs } from "./drop-unseen-logprobs.ts";
import { type EventReader, readAll } from "./event-reader.ts";
import { firstCallOnly } from "./first-call-only.ts";
import { readForcedCall } from "./forced-call/read-forced-call.ts";
import { readOfferedCall } from "./forced-call/read-offered-call.ts";
import { generateFitting } from "./generate-fitting.ts";
import type { InferenceRequest } from "./inference.ts";
import type { ResolvedGeneration } from "./resolve-generation.ts";
import { splitReasoning } from "./split-reasoning.ts";
import { tidyAnswer } from "./tidy-answer.ts";
import { readWrittenCalls } from "./tool-format/read-written-calls.ts";
import { splitToolCalls } from "./tool-format/split-tool-calls.ts";

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
