import { formatMebibytes } from "../../json/quantities.ts";
import { type ContextExcess, ServiceError } from "../../errors/service-error.ts";
import type { ContextSource } from "../model.ts";
import type { Clock } from "./available-memory.ts";
import type { LoadPlan } from "./load-planner.ts";

/** Back-off before the second restart; the first one is immediate, and each later wait is twice as long. */
const FIRST_PAUSE_MS = 1000;
/** Longest back-off: a model that keeps failing is retried about once a minute. */
const MAX_PAUSE_MS = 60_000;

/** An engine that ended unexpectedly: the plan it was loaded with, and why it ended. */
export interface Crash {
  readonly plan: LoadPlan;
  readonly reason: string;
}

/** Failures of models: delays their retries, and keeps the plans of crashed engines for the restart. */
export class LoadFailures {
  readonly #clock: Clock;
  readonly #failures = new Map<string, { count: number; notBefore: number; error: ServiceError }>();
  /** Crashes of models that have not been loaded again since. */
  readonly crashes = new Map<string, Crash>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param crash set if the model had been loaded; the next request loads it again with this plan */
  add(alias: string, error: ServiceError, crash?: Crash): void {
    if (crash) this.crashes.set(alias, crash);
    const count = (this.#failures.get(alias)?.count ?? 0) + 1;
    const pause = count === 1 ? 0 : Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (count - 2));
    this.#failures.set(alias, { count, notBefore: this.#clock.now() + pause, error });
  }

  /** Resets the back-off, after a successful request or an explicit load. */
  clearFailures(alias: string): void {
    this.#failures.delete(alias);
  }

  clear(alias: string): void {
    this.clearFailures(alias);
    this.crashes.delete(alias);
  }

  /** Throws the last error with the time to wait while the back-off lasts. */
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

/** Minimum tokens for the answer in a suggested context. */
const ANSWER_TOKENS = 1024;

/** Smallest suggested context; others are this times a power of two. */
const MIN_SUGGESTED_CONTEXT = 1024;

const SOURCE_TEXTS: Readonly<Record<ContextSource, string>> = {
  request: "requested when the model was loaded",
  modelfile: "set by PARAMETER num_ctx of its Modelfile",
  configuration: "set by models.context_size",
  default: "the default of POST /api/models/load",
  trained: "all that the model was trained for",
  automatic: "chosen automatically",
  memory: "limited by the memory that was available",
};

/**
 * Writes the error message for a prompt that is longer than the context: what has set the context size, which context
 * would hold the prompt and how to get it, or why none would. Coding agents recognize the first sentence and then
 * shorten their conversation.
 * @param freeBytes memory that the model's engine may use, including what it has now
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
    `${contextSize} tokens (${SOURCE_TEXTS[contextSource]}).`;
  if (trained > 0 && trained <= promptTokens) {
    const trainedNote =
      trained > contextSize
        ? ` The model was trained for ${trained} tokens, which would not hold it either.`
        : "";
    return `${problem}${trainedNote} Shorten the prompt, or use a model that was trained for more.`;
  }
  const wanted = suggestedContext(promptTokens, trained);
  const bytes = bytesWith(plan, wanted);
  if (bytes !== undefined && bytes <= freeBytes) return `${problem} ${howToLoad(plan, wanted, bytes)}`;
  const largest = largestThatFits(plan, wanted, contextSize, freeBytes);
  const needed =
    bytes === undefined ? "more memory than an engine can have" : `about ${formatMebibytes(bytes)} of memory`;
  const advice =
    largest === undefined
      ? "No larger one fits"
      : `The largest that fits has ${largest} tokens (daybreak load --context-size ${largest})`;
  return (
    `${problem} A context of ${wanted} tokens would hold it, but needs ${needed}; ` +
    `${formatMebibytes(Math.max(0, freeBytes))} are free. ${advice}: shorten the prompt, unload other models, or use a smaller model.`
  );
}

function howToLoad({ record: { alias } }: LoadPlan, tokens: number, bytes: number): string {
  return (
    `A context of ${tokens} tokens needs about ${formatMebibytes(bytes)} of memory and fits: unload the model and load it again with ` +
    `"daybreak load ${alias} --context-size ${tokens}" or "context_size": ${tokens}, or set PARAMETER num_ctx in its ` +
    "Modelfile or models.context_size."
  );
}

/** Returns a power of two with space for an answer, limited to what the model was trained for. */
function suggestedContext(promptTokens: number, trained: number): number {
  let tokens = MIN_SUGGESTED_CONTEXT;
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

/** Estimates the bytes with another context; undefined: more than any engine can have. */
function bytesWith({ spec, needsOf }: LoadPlan, contextSize: number): number | undefined {
  // A larger context gets smaller batches, so that their results take about the same memory.
  const batchSize = Math.max(spec.slots, Math.ceil((spec.batchSize * spec.contextSize) / contextSize));
  try {
    return needsOf({ ...spec, contextSize, batchSize, sharedContext: true }).bytes;
  } catch {
    return undefined;
  }
}
