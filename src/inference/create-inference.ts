import type { Config } from "../config/schema.ts";
import { checkCallDepths } from "../engine/request-limits.ts";
import type { Engine } from "../engine/engine.ts";
import type { GenerationEvent } from "../engine/protocol/generation.ts";
import type { TokenIds } from "../engine/protocol/calls.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Model, Models } from "../models/model.ts";
import type { AdmissionRequest, Permit } from "./admission-queue.ts";
import { checkEmbedding, checkReranking } from "./check-capabilities.ts";
import { Deadline } from "./deadline.ts";
import { dropUnseenLogprobs } from "./drop-unseen-logprobs.ts";
import { embedTruncated } from "./embed-truncated.ts";
import { EngineQueues } from "./engine-queues.ts";
import type { EventReader } from "./event-reader.ts";
import { firstCallOnly } from "./first-call-only.ts";
import { readForcedCall } from "./forced-call/read-forced-call.ts";
import { readOfferedCall } from "./forced-call/read-offered-call.ts";
import { GenerationStream } from "./generation-stream.ts";
import type {
  DetokenizeRequest,
  EmbedAnswer,
  EmbedRequest,
  Inference,
  InferenceEvent,
  InferenceRequest,
  InferenceStream,
  PromptFromTokensRequest,
  RerankAnswer,
  RerankRequest,
  TokenizeRequest,
} from "./inference.ts";
import { embeddedTokens, neededTokens, reservedTokens } from "./reserved-tokens.ts";
import { RequestAccounting } from "./request-accounting.ts";
import { resolveGeneration, type ResolvedGeneration } from "./resolve-generation.ts";
import { runBatch } from "./run-batch.ts";
import { splitReasoning } from "./split-reasoning.ts";
import { promptFromTokens, type Piece, splitPieces, toTokenIds } from "./tokens.ts";
import { splitToolCalls } from "./tool-format/split-tool-calls.ts";

export interface InferenceOptions {
  models: Pick<Models, "acquire">;
  metrics: Metrics;
  config: {
    readonly models: Pick<Config["models"], "queue_size">;
    readonly engine: Pick<Config["engine"], "request_timeout">;
  };
  /** Milliseconds since any origin. */
  now?: () => number;
}

/** Creates the {@link Inference} of a daemon or a page. */
export function createInference(options: InferenceOptions): Inference {
  return new InferenceService(options);
}

class InferenceService implements Inference {
  readonly #models: Pick<Models, "acquire">;
  readonly #metrics: Metrics;
  readonly #requestTimeoutMs: number;
  readonly #now: () => number;
  readonly #queues: EngineQueues;
  readonly #accounting: RequestAccounting;

  constructor({ models, metrics, config, now = () => performance.now() }: InferenceOptions) {
    this.#models = models;
    this.#metrics = metrics;
    this.#requestTimeoutMs = config.engine.request_timeout;
    this.#now = now;
    this.#queues = new EngineQueues({ maxWaiting: config.models.queue_size, now });
    this.#accounting = new RequestAccounting(metrics, now);
  }

  get activeRequests(): number {
    return this.#accounting.active;
  }

  async generate(request: InferenceRequest, signal: AbortSignal): Promise<InferenceStream> {
    const startedAt = this.#now();
    checkCallDepths(request.input);
    // Disposed in reverse order: first the permit, then the lease, and last the count of requests.
    const held = new DisposableStack();
    try {
      held.use(this.#accounting.begin(request.endpoint));
      const { model, engine } = held.use(
        await this.#models.acquire(request.model || undefined, signal, request.residency),
      );
      const loadMs = this.#now() - startedAt;
      const resolved = resolveGeneration(request, model, engine.info);
      const wish = {
        tokens: reservedTokens(resolved.request, engine.info),
        bypassQueueLimit: request.isFurther ?? false,
      };
      const permit = held.use(await this.#admit(engine, model, signal, wish));
      const events = await GenerationStream.begin({
        run: (onEvent, abort) => engine.generate(resolved.request, onEvent, abort),
        readers: readersOf(resolved, request.onTokens),
        deadline: held.use(new Deadline(signal, this.#requestTimeoutMs)),
        held,
        onPrompt: (tokens) => permit.resize(neededTokens(resolved.request, tokens, engine.info)),
        finish: (done) => this.#finish(done, model.alias, startedAt),
      });
      return { model: model.alias, loadMs, sampling: resolved.request.sampling, events };
    } catch (error) {
      held.dispose();
      throw error;
    }
  }

  async embed(request: EmbedRequest, signal: AbortSignal): Promise<EmbedAnswer> {
    const { model, loadMs, results } = await this.#batch(
      request,
      request.input,
      signal,
      checkEmbedding,
      (engine, text, abort) =>
        request.truncate ? embedTruncated(engine, text, abort) : engine.embed(text, abort),
    );
    const totalTokens = this.#countPrompt(results);
    return { model, loadMs, vectors: results.map(({ vector }) => vector), totalTokens };
  }

  async rerank(request: RerankRequest, signal: AbortSignal): Promise<RerankAnswer> {
    const { model, results } = await this.#batch(
      request,
      request.documents,
      signal,
      checkReranking,
      (engine, document, abort) => engine.rerank(request.query, document, abort),
    );
    const totalTokens = this.#countPrompt(results);
    return { model, scores: results.map(({ score }) => score), totalTokens };
  }

  async tokenize(request: TokenizeRequest, signal: AbortSignal): Promise<TokenIds> {
    const { model, text, options, residency } = request;
    using lease = await this.#models.acquire(model || undefined, signal, residency);
    return await lease.engine.tokenize(text, options, signal);
  }

  async pieces({ model, tokens, residency }: DetokenizeRequest, signal: AbortSignal): Promise<Piece[]> {
    using lease = await this.#models.acquire(model || undefined, signal, residency);
    const ids = toTokenIds(tokens, "tokens");
    return splitPieces(ids, await lease.engine.pieces(ids, signal));
  }

  async detokenize({ model, tokens, residency }: DetokenizeRequest, signal: AbortSignal): Promise<string> {
    using lease = await this.#models.acquire(model || undefined, signal, residency);
    const { bytes } = await lease.engine.pieces(toTokenIds(tokens, "tokens"), signal);
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  }

  async promptFromTokens(request: PromptFromTokensRequest, signal: AbortSignal): Promise<string> {
    const { model, tokens, param, residency } = request;
    using lease = await this.#models.acquire(model || undefined, signal, residency);
    return await promptFromTokens(lease.engine, tokens, param, signal);
  }

  async #batch<Item, Result>(
    request: Pick<EmbedRequest, "model" | "residency">,
    items: readonly Item[],
    signal: AbortSignal,
    check: (model: Model) => void,
    call: (engine: Engine, item: Item, signal: AbortSignal) => Promise<Result>,
  ): Promise<{ model: string; loadMs: number; results: Result[] }> {
    const startedAt = this.#now();
    using held = new DisposableStack();
    held.use(this.#accounting.begin("embeddings"));
    const { model, engine } = held.use(
      await this.#models.acquire(request.model || undefined, signal, request.residency),
    );
    const loadMs = this.#now() - startedAt;
    check(model);
    if (items.length === 0) return { model: model.alias, loadMs, results: [] };
    const tokens = embeddedTokens(engine.spec, engine.info);
    const permit = await this.#admit(engine, model, signal, { tokens });
    const deadline = held.use(new Deadline(signal, this.#requestTimeoutMs));
    const results = await runBatch(items, { permit, tokens }, deadline.signal, (item, abort) =>
      call(engine, item, abort),
    );
    return { model: model.alias, loadMs, results };
  }

  async #admit(
    engine: Engine,
    { alias }: Model,
    signal: AbortSignal,
    wish: AdmissionRequest,
  ): Promise<Permit> {
    this.#metrics.requestsWaiting(1);
    try {
      return await this.#queues.of(engine, alias).acquire(signal, wish);
    } finally {
      this.#metrics.requestsWaiting(-1);
    }
  }

  #countPrompt(results: readonly { tokens: number }[]): number {
    const total = results.reduce((sum, { tokens }) => sum + tokens, 0);
    this.#metrics.promptTokens(total);
    return total;
  }

  #finish(
    done: Extract<GenerationEvent, { type: "done" }>,
    alias: string,
    startedAt: number,
  ): InferenceEvent {
    const totalMs = this.#now() - startedAt;
    const { promptTokens, completionTokens } = done.usage;
    // The first token comes with the prompt, so the time of a single token is that of the request.
    const seconds = (completionTokens > 1 ? done.timings.completionMs : totalMs) / 1000;
    const tokensPerSecond = seconds > 0 ? completionTokens / seconds : 0;
    this.#metrics.promptTokens(promptTokens);
    this.#metrics.tokensGenerated(alias, completionTokens, tokensPerSecond);
    return { ...done, totalMs, tokensPerSecond };
  }
}

/** The readers of the engine's events according to the model's settings, in order. */
function readersOf(
  { request, reasoningTags, calls }: ResolvedGeneration,
  onTokens: InferenceRequest["onTokens"],
): EventReader[] {
  const readers: EventReader[] = [];
  if (onTokens) {
    readers.push((event) => {
      if (event.type === "text-delta" && event.logprobs) onTokens(event.logprobs);
      return [event];
    });
  }
  if (request.logprobs !== undefined) readers.push(dropUnseenLogprobs());
  if (reasoningTags) readers.push(splitReasoning(reasoningTags));
  if (calls?.kind === "single") readers.push(firstCallOnly());
  else if (calls?.kind === "forced") readers.push(readForcedCall());
  else if (calls?.kind === "offered") readers.push(readOfferedCall(calls.names));
  else if (calls) readers.push(splitToolCalls(calls.format, { parallel: calls.parallel }));
  return readers;
}
