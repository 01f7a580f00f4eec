import type { Engine } from "../../../src/engine/engine.ts";
import { prepareEngine } from "../../../src/engine/engine-image.ts";
import type { Sampling } from "../../../src/engine/protocol/generation.ts";
import { createEngineStarter } from "../../../src/engine/start-engine.ts";
import { generated } from "../../../test/support/generated.ts";

const TIMEOUT_MS = 900_000;
/** Beyond what any logit of random weights reaches. */
const CERTAIN = 100;

/** Requests by the kind of text that a model with random weights writes. */
export const TEXTS = {
  /** One word over and over, which is always guessed right. */
  oneWord: { temperature: 0, logitBias: among(1) },
  /** Picks one of four words at random, which looks like repetition and is mostly guessed wrong. */
  fourWords: { temperature: 5, topK: 0, topP: 1, logitBias: among(4) },
  /** Repeats nothing. */
  random: { temperature: 5, topK: 0, topP: 1 },
} as const satisfies Record<string, Sampling>;

/** Leaves a model so many tokens to choose from. */
function among(most: number): Sampling["logitBias"] {
  return Array.from({ length: most }, (_, at) => ({ token: 300 + at, bias: CERTAIN }));
}

/** Starts the engine process that the daemon would start. */
export async function startGuessingEngine(files: {
  readonly model: string;
  readonly draft?: string | undefined;
  readonly cache: string;
  readonly threads: number;
}): Promise<Engine> {
  const { wasmPath, heapLimitBytes } = await prepareEngine({ cacheDir: files.cache, kernels: "auto" });
  const limits = { loadTimeoutMs: TIMEOUT_MS, stallTimeoutMs: TIMEOUT_MS, wasmPath, heapLimitBytes };
  return await createEngineStarter(limits)({
    modelFiles: [files.model],
    adapters: [],
    ...(files.draft !== undefined && { draft: { path: files.draft, kvBytesPerToken: 0 } }),
    purpose: "generate",
    contextSize: 2048,
    sharedContext: true,
    gpuLayers: 0,
    slots: 1,
    threads: files.threads,
    batchSize: 128,
    flashAttention: "auto",
    contextShift: false,
  });
}

/** An answer behind its first tokens. */
export interface MeasuredAnswer {
  readonly tokens: number;
  /** Tokens that were guessed for them, and those of these that were right. */
  readonly guessed: number;
  readonly kept: number;
  /** By the clock. */
  readonly ms: number;
}

/** Generates so many tokens and measures what follows the first `skipped` of them. */
export async function measureAnswer(
  engine: Engine,
  prompt: string,
  sampling: Sampling,
  { tokens, skipped }: { readonly tokens: number; readonly skipped: number },
  now: () => number,
): Promise<MeasuredAnswer> {
  const request = {
    input: { kind: "prompt" as const, prompt },
    maxTokens: tokens,
    stop: [],
    sampling: { ...sampling, ignoreEos: true },
    format: { type: "text" as const },
    cachePrompt: true,
    timings: true,
  };
  let first: MeasuredAnswer | undefined;
  let before: MeasuredAnswer | undefined;
  for await (const event of generated(engine, request, new AbortController().signal)) {
    if (event.type !== "text-delta" && event.type !== "done") continue;
    const usage = event.type === "done" ? event.usage : event.soFar?.usage;
    if (!usage) continue;
    const { tokens: guessed, kept } = usage.guesses ?? { tokens: 0, kept: 0 };
    const at = { tokens: usage.completionTokens, guessed, kept, ms: now() };
    // The tokens of a step come one by one, and the first of them with what is known of all.
    const isNewStep = before && (guessed === 0 || guessed > before.guessed);
    if (before && isNewStep && at.tokens >= skipped)
      first ??= { ...at, tokens: before.tokens + 1 + kept - before.kept };
    before = at;
    if (event.type === "done" && first) {
      return {
        tokens: at.tokens - first.tokens,
        guessed: at.guessed - first.guessed,
        kept: at.kept - first.kept,
        ms: at.ms - first.ms,
      };
    }
  }
  throw new Error("the engine did not end its answer");
}
