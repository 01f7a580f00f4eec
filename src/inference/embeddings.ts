import type { Engine } from "../engine/engine.ts";
import type { EmbeddingResult } from "../engine/protocol/calls.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { Model } from "../models/model.ts";
import type { Permit } from "./admission-queue.ts";
import { checkEmbedding, checkReranking, checkTextModel } from "./check-capabilities.ts";
import { embeddingContextTokens } from "./context-budget.ts";
import { deadlineOf } from "./deadline.ts";
import { type EngineQueues, preemptionFor } from "./engine-queues.ts";
import type {
  BatchRequest,
  EmbedAnswer,
  EmbedRequest,
  RerankAnswer,
  RerankRequest,
  ScoreAnswer,
  ScoreRequest,
} from "./inference.ts";
import { adapterGroup, adapterScales } from "./lora-adapters.ts";
import type { ModelLeases } from "./model-leases.ts";
import type { RequestAccounting } from "./request-accounting.ts";
import { scorePrompt, type ScoringEngine } from "./score-prompt.ts";

interface TextBatchesOptions {
  readonly leases: ModelLeases;
  readonly queues: EngineQueues;
  readonly accounting: RequestAccounting;
  readonly isLowPriority: () => boolean;
  readonly requestTimeoutMs: number;
}

/** Embeds, reranks and scores the texts of a request, several in parallel. */
export class TextBatches {
  readonly #options: TextBatchesOptions;

  constructor(options: TextBatchesOptions) {
    this.#options = options;
  }

  async embed(request: EmbedRequest, signal: AbortSignal): Promise<EmbedAnswer> {
    const { model, loadMs, results, totalTokens } = await this.#run(
      request,
      request.input,
      signal,
      checkEmbedding,
      (engine, text, abort) =>
        request.truncate ? embedTruncated(engine, text, abort) : engine.embed(text, abort),
    );
    return { model, loadMs, vectors: results.map(({ vector }) => vector), totalTokens };
  }

  async rerank(request: RerankRequest, signal: AbortSignal): Promise<RerankAnswer> {
    const { model, results, totalTokens } = await this.#run(
      request,
      request.documents,
      signal,
      checkReranking,
      (engine, document, abort) => engine.rerank(request.query, document, abort),
    );
    return { model, scores: results.map(({ score }) => score), totalTokens };
  }

  async score(request: ScoreRequest, signal: AbortSignal): Promise<ScoreAnswer> {
    const { model, results } = await this.#run(
      request,
      request.prompts,
      signal,
      checkTextModel,
      (engine, prompt, abort, scored) => {
        const scales = adapterScales(scored, undefined);
        return scorePrompt(scales ? withScales(engine, scales) : engine, prompt, request.logprobs, abort);
      },
    );
    return { model, prompts: results };
  }

  async #run<Item, Result extends { readonly tokens: number }>(
    request: BatchRequest,
    items: readonly Item[],
    client: AbortSignal,
    check: (model: Model) => void,
    call: (engine: Engine, item: Item, signal: AbortSignal, model: Model) => Promise<Result>,
  ): Promise<{ model: string; loadMs: number; results: Result[]; totalTokens: number }> {
    const { leases, queues, accounting, isLowPriority, requestTimeoutMs } = this.#options;
    using resources = new DisposableStack();
    const { signal, onPreempt } = preemptionFor(client, isLowPriority());
    const account = resources.use(accounting.begin("embeddings"));
    try {
      const { model, engine } = await leases.acquire({ ...request, onPreempt }, signal, resources);
      account.modelLoaded(model.alias);
      const loadMs = account.elapsedMs;
      check(model);
      if (items.length === 0) {
        account.textsComputed(0);
        return { model: model.alias, loadMs, results: [], totalTokens: 0 };
      }
      const tokens = embeddingContextTokens(engine.spec, engine.info);
      const group = adapterGroup(adapterScales(model, undefined));
      const admission = { tokens, group, mayWait: request.origin === undefined, onPreempt };
      const permit = await account.waitFor(queues.queueFor(engine, model.alias).acquire(signal, admission));
      const deadline = resources.use(deadlineOf(request, signal, requestTimeoutMs));
      const results = await runBatch(items, { permit, tokens }, deadline.signal, (item, abort) =>
        call(engine, item, abort, model),
      );
      const totalTokens = results.reduce((sum, each) => sum + each.tokens, 0);
      account.textsComputed(totalTokens);
      return { model: model.alias, loadMs, results, totalTokens };
    } catch (error) {
      account.failed(error, client);
      throw error;
    }
  }
}

/** Wraps an engine so that its generations use these scales of the adapters. */
function withScales(engine: Engine, scales: readonly number[]): ScoringEngine {
  return {
    info: engine.info,
    tokenize: (...call) => engine.tokenize(...call),
    pieces: (...call) => engine.pieces(...call),
    generate: (request, ...call) => engine.generate({ ...request, adapterScales: [...scales] }, ...call),
  };
}

/**
 * Runs one call per item, in parallel up to the engine's slots, and returns the results in order. The first permit
 * admits the batch; its other calls queue among other requests. The first failure ends the batch and aborts its running
 * calls.
 * @param admission permit of the first call, which is released here, and the context tokens to reserve for each call
 */
async function runBatch<Item, Result>(
  items: readonly Item[],
  admission: { readonly permit: Permit; readonly tokens: number },
  signal: AbortSignal,
  call: (item: Item, signal: AbortSignal) => Promise<Result>,
): Promise<Result[]> {
  const { permit: firstPermit, tokens } = admission;
  const { queue, group, onPreempt } = firstPermit;
  const stop = new AbortController();
  const ended = AbortSignal.any([signal, stop.signal]);
  const results = Array.from<Result>({ length: items.length });
  let next = 0;
  const work = async (leased?: Permit): Promise<void> => {
    let permit = leased;
    for (let index = next++; index < items.length; index = next++) {
      permit ??= await queue.acquire(ended, { tokens, bypassQueueLimit: true, group, onPreempt });
      try {
        results[index] = await call(items[index]!, ended);
      } finally {
        permit[Symbol.dispose]();
        permit = undefined;
      }
    }
  };
  const workers = [work(firstPermit)];
  while (workers.length < Math.min(queue.slots, items.length)) workers.push(work());
  try {
    await Promise.all(workers);
    return results;
  } catch (error) {
    stop.abort(error);
    await Promise.allSettled(workers);
    throw error;
  } finally {
    firstPermit[Symbol.dispose]();
  }
}

type TruncatingEngine = Pick<Engine, "embed" | "tokenize" | "pieces" | "info" | "spec">;

/** Characters per token that suffice for any text. */
const CHARACTERS_PER_TOKEN = 64;
/** Factor by which a text is shortened until it fits, if tokens cannot be counted. */
const SHORTEN_FACTOR = 0.75;

/**
 * Embeds a text, or as many of its first tokens as fit into a batch. A truncated text may tokenize to one token more
 * than expected; then a shorter one is tried.
 * @throws ServiceError context_length_exceeded if no part of it fits
 */
export async function embedTruncated(
  engine: TruncatingEngine,
  text: string,
  signal: AbortSignal,
): Promise<EmbeddingResult> {
  const complete = await embedIfFits(engine, text, signal);
  if (complete) return complete;
  const cut = await embedFirstTokens(engine, text, signal).catch((error: unknown) => {
    // The stock WASM has no tokenizer to truncate with.
    if (!(error instanceof ServiceError) || error.code !== "unsupported_feature") throw error;
    return embedFirstCharacters(engine, text, signal);
  });
  if (cut) return cut;
  throw new ServiceError("context_length_exceeded", "The text does not fit, not even its beginning.");
}

async function embedFirstTokens(
  engine: TruncatingEngine,
  text: string,
  signal: AbortSignal,
): Promise<EmbeddingResult | undefined> {
  const limit = Math.min(engine.info.contextSize, engine.spec.batchSize);
  const begin = text.slice(0, limit * CHARACTERS_PER_TOKEN);
  const ids = await engine.tokenize(begin, { addSpecial: false, parseSpecial: true }, signal);
  const { bytes, ends } = await engine.pieces(ids.subarray(0, limit), signal);
  const added = await engine.tokenize("", { addSpecial: true, parseSpecial: true }, signal);
  for (let count = limit - added.length, step = 1; count > 0; count -= step, step *= 2) {
    // Decoded as part of a stream, so that an incomplete character at the end is left out.
    const part = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(0, ends[count - 1]), {
      stream: true,
    });
    const result = await embedIfFits(engine, part, signal);
    if (result) return result;
  }
  return undefined;
}

async function embedFirstCharacters(
  engine: TruncatingEngine,
  text: string,
  signal: AbortSignal,
): Promise<EmbeddingResult | undefined> {
  const longest = Math.min(engine.info.contextSize, engine.spec.batchSize) * CHARACTERS_PER_TOKEN;
  for (
    let length = Math.min(text.length, longest);
    length > 0;
    length = Math.floor(length * SHORTEN_FACTOR)
  ) {
    const result = await embedIfFits(engine, text.slice(0, length).toWellFormed(), signal);
    if (result) return result;
  }
  return undefined;
}

async function embedIfFits(
  engine: Pick<Engine, "embed">,
  text: string,
  signal: AbortSignal,
): Promise<EmbeddingResult | undefined> {
  try {
    return await engine.embed(text, signal);
  } catch (error) {
    if (error instanceof ServiceError && error.code === "context_length_exceeded") return undefined;
    throw error;
  }
}

/**
 * Truncates an embedding to its first components and normalizes it again, for models that are trained for that.
 * @throws ServiceError invalid_parameter if the model has fewer
 */
export function shortenVector(vector: readonly number[], dimensions: number): number[] {
  if (dimensions > vector.length) {
    throw new ServiceError("invalid_parameter", `dimensions: the model has ${vector.length}.`, {
      param: "dimensions",
    });
  }
  const shortened = vector.slice(0, dimensions);
  const length = Math.hypot(...shortened);
  return length === 0 ? shortened : shortened.map((component) => component / length);
}
