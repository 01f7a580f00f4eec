import type { Engine } from "../engine/engine.ts";
import type { Model } from "../models/model.ts";
import { adapterGroup, adapterScales } from "./adapter-scales.ts";
import { checkEmbedding, checkReranking, checkTextModel } from "./check-capabilities.ts";
import { deadlineOf } from "./deadline.ts";
import { embedTruncated } from "./embed-truncated.ts";
import type { EngineQueues } from "./engine-queues.ts";
import { givingWay } from "./giving-way.ts";
import type {
  BatchRequest,
  EmbedAnswer,
  EmbedRequest,
  RerankAnswer,
  RerankRequest,
  ScoreAnswer,
  ScoreRequest,
} from "./inference.ts";
import type { ModelLeases } from "./model-leases.ts";
import type { RequestAccounting } from "./request-accounting.ts";
import { embeddedTokens } from "./reserved-tokens.ts";
import { runBatch } from "./run-batch.ts";
import { scorePrompt, type ScoringEngine } from "./score-prompt.ts";

interface TextBatchesOptions {
  readonly leases: ModelLeases;
  readonly queues: EngineQueues;
  readonly accounting: RequestAccounting;
  readonly isBackground: () => boolean;
  readonly requestTimeoutMs: number;
}

/** Embeds, reranks and scores the texts of a request, several of them at once. */
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
    const { leases, queues, accounting, isBackground, requestTimeoutMs } = this.#options;
    using held = new DisposableStack();
    const { signal, onYield } = givingWay(client, isBackground());
    const account = held.use(accounting.begin("embeddings"));
    try {
      const { model, engine } = await leases.acquire({ ...request, onYield }, signal, held);
      account.answeredBy(model.alias);
      const loadMs = account.elapsedMs;
      check(model);
      if (items.length === 0) {
        account.computed(0);
        return { model: model.alias, loadMs, results: [], totalTokens: 0 };
      }
      const tokens = embeddedTokens(engine.spec, engine.info);
      const group = adapterGroup(adapterScales(model, undefined));
      const wish = { tokens, group, mayWait: request.mayWait, onYield };
      const permit = await account.waitFor(queues.of(engine, model.alias).acquire(signal, wish));
      const deadline = held.use(deadlineOf(request, signal, requestTimeoutMs));
      const results = await runBatch(items, { permit, tokens }, deadline.signal, (item, abort) =>
        call(engine, item, abort, model),
      );
      const totalTokens = results.reduce((sum, each) => sum + each.tokens, 0);
      account.computed(totalTokens);
      return { model: model.alias, loadMs, results, totalTokens };
    } catch (error) {
      account.failed(error, client);
      throw error;
    }
  }
}

/** The engine, with these scales of its adapters. */
function withScales(engine: Engine, scales: readonly number[]): ScoringEngine {
  return {
    info: engine.info,
    tokenize: (...call) => engine.tokenize(...call),
    pieces: (...call) => engine.pieces(...call),
    generate: (request, ...call) => engine.generate({ ...request, adapterScales: [...scales] }, ...call),
  };
}
