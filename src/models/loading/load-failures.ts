import { type ContextExcess, ServiceError } from "../../errors/service-error.ts";
import type { ContextSource } from "../model.ts";
import { type Clock, inMiB } from "./available-memory.ts";
import type { LoadPlan } from "./load-planner.ts";

/** The first restart is immediate; the second waits this long, and the wait doubles from then on. */
const FIRST_PAUSE_MS = 1000;
/** A model that keeps failing is retried about once a minute. */
const LONGEST_PAUSE_MS = 60_000;

/** An engine that ended unexpectedly: how its model was loaded, and why it ended. */
export interface Crash {
  readonly plan: LoadPlan;
  readonly reason: string;
}

/** Remembers failed models, restores the settings of crashed ones, and delays retries of those that keep failing. */
export class Failures {
  readonly #clock: Clock;
  readonly #failures = new Map<string, { count: number; notBefore: number; error: ServiceError }>();
  readonly #crashes = new Map<string, Crash>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param crash if the model was already loaded: the next request loads it again */
  add(alias: string, error: ServiceError, crash?: Crash): void {
    if (crash) this.#crashes.set(alias, crash);
    const count = (this.#failures.get(alias)?.count ?? 0) + 1;
    const pause = count === 1 ? 0 : Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (count - 2));
    this.#failures.set(alias, { count, notBefore: this.#clock.now() + pause, error });
  }

  /** The crash of a model, if it has not been loaded again since. */
  crash(alias: string): Crash | undefined {
    return this.#crashes.get(alias);
  }

  /** The model has been loaded again. */
  recovered(alias: string): void {
    this.#crashes.delete(alias);
  }

  /** The engine has worked, or was loaded explicitly: the next failure counts as the first. */
  forgive(alias: string): void {
    this.#failures.delete(alias);
  }

  /** The model is no longer wanted. */
  forget(alias: string): void {
    this.forgive(alias);
    this.recovered(alias);
  }

  /** Throws the last error with the time to wait, if it is too early to retry. */
  check(alias: string): void {
    const failures = this.#failures.get(alias);
    const wait = (failures?.notBefore ?? 0) - this.#clock.now();
    if (!failures || wait <= 0) return;
    const seconds = Math.ceil(wait / 1000);
    const { error, count } = failures;
    throw new ServiceError(
      error.code,
      `${error.message} It failed ${count} times and will be retried in ${seconds} s.`,
      { cause: error, retryAfterSecs: seconds },
    );
  }
}

/** Tokens that a larger context leaves at least for the answer. */
const ANSWER_TOKENS = 1024;

/** Contexts are suggested as this many tokens, or twice, four times … as many. */
const SMALLEST_SUGGESTED = 1024;

const SOURCES: Readonly<Record<ContextSource, string>> = {
  request: "as it was asked for when the model was loaded",
  modelfile: "set by PARAMETER num_ctx of its Modelfile",
  configuration: "set by models.context_size",
  default: "the default of POST /api/models/load",
  trained: "all that the model was trained for",
  automatic: "chosen automatically",
  memory: "as many as the memory had room for",
};

/**
 * What a client is told whose prompt is longer than the context: what has set that, which context would hold the prompt and
 * how to get it, or why no context would. Agents recognize the first sentence, and shorten their conversation.
 * @param freeBytes what the model's engine may use, with the memory that it has now
 */
export function explainExcess(
  { promptTokens, contextSize }: ContextExcess,
  plan: LoadPlan,
  freeBytes: number,
): string {
  const { contextSource, record } = plan;
  const trained = record.gguf.contextLength;
  const problem =
    `The prompt has ${promptTokens} tokens and exceeds the context window: the maximum context length is ` +
    `${contextSize} tokens (${SOURCES[contextSource]}).`;
  if (trained > 0 && trained <= promptTokens) {
    const more =
      trained > contextSize
        ? ` The model was trained for ${trained} tokens, which would not hold it either.`
        : "";
    return `${problem}${more} Shorten the prompt, or use a model that was trained for more.`;
  }
  const wanted = suggestedContext(promptTokens, trained);
  const bytes = bytesWith(plan, wanted);
  if (bytes !== undefined && bytes <= freeBytes) return `${problem} ${howToGet(plan, wanted, bytes)}`;
  const largest = largestThatFits(plan, wanted, contextSize, freeBytes);
  const needed =
    bytes === undefined ? "more memory than an engine can have" : `about ${inMiB(bytes)} of memory`;
  const most =
    largest === undefined
      ? "No larger one fits"
      : `The largest that fits has ${largest} tokens (daybreak load --context-size ${largest})`;
  return (
    `${problem} A context of ${wanted} tokens would hold it, but needs ${needed}; ` +
    `${inMiB(Math.max(0, freeBytes))} are free. ${most}: shorten the prompt, unload other models, or use a smaller model.`
  );
}

function howToGet({ record: { alias } }: LoadPlan, tokens: number, bytes: number): string {
  return (
    `A context of ${tokens} tokens needs about ${inMiB(bytes)} of memory and fits: unload the model and load it again with ` +
    `"daybreak load ${alias} --context-size ${tokens}" or "context_size": ${tokens}, or set PARAMETER num_ctx in its ` +
    "Modelfile or models.context_size."
  );
}

/** A power of two that leaves room for an answer, if the model was trained for that much. */
function suggestedContext(promptTokens: number, trained: number): number {
  let tokens = SMALLEST_SUGGESTED;
  while (tokens < promptTokens + ANSWER_TOKENS) tokens *= 2;
  return trained > 0 ? Math.min(tokens, trained) : tokens;
}

function largestThatFits(
  plan: LoadPlan,
  tooLarge: number,
  current: number,
  freeBytes: number,
): number | undefined {
  for (let tokens = tooLarge / 2; tokens > current; tokens /= 2) {
    const bytes = bytesWith(plan, Math.floor(tokens));
    if (bytes !== undefined && bytes <= freeBytes) return Math.floor(tokens);
  }
  return undefined;
}

/** Undefined: more than any engine can have. */
function bytesWith({ spec, needsOf }: LoadPlan, contextSize: number): number | undefined {
  // Steps are shorter with a larger context, so that their results take about as much memory.
  const batchSize = Math.max(spec.slots, Math.ceil((spec.batchSize * spec.contextSize) / contextSize));
  try {
    return needsOf({ ...spec, contextSize, batchSize, sharedContext: true }).bytes;
  } catch {
    return undefined;
  }
}
