import type { Config } from "../config/schema.ts";
import { checkCallDepths } from "../engine/request-limits.ts";
import type { Engine } from "../engine/engine.ts";
import type { TokenIds } from "../engine/protocol/calls.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Model, Models } from "../models/model.ts";
import type { AdmissionRequest, Permit } from "./admission-queue.ts";
import { checkEmbedding, checkReranking } from "./check-capabilities.ts";
import { Deadline } from "./deadline.ts";
import { dropTextTags } from "./drop-text-tags.ts";
import { dropUnseenLogprobs } from "./drop-unseen-logprobs.ts";
import { embedTruncated } from "./embed-truncated.ts";
import { EngineQueues } from "./engine-queues.ts";
import type { EventReader } from "./event-reader.ts";
import { firstCallOnly } from "./first-call-only.ts";
import { readForcedCall } from "./forced-call/read-forced-call.ts";
import { readOfferedCall } from "./forced-call/read-offered-call.ts";
import type { FollowWork } from "./follow-work.ts";
import { GenerationStream } from "./generation-stream.ts";
import type {
  DetokenizeRequest,
  EmbedAnswer,
  EmbedRequest,
  Inference,
  InferenceRequest,
  InferenceStream,
  PromptFromTokensRequest,
  RerankAnswer,
  RerankRequest,
  TokenizeRequest,
} from "./inference.ts";
import { embeddedTokens, neededTokens, reservedTokens } from "./reserved-tokens.ts";
import { type RequestAccount, RequestAccounting } from "./request-accounting.ts";
import { resolveGeneration, type ResolvedGeneration } from "./resolve-generation.ts";
import { runBatch } from "./run-batch.ts";
import { splitReasoning } from "./split-reasoning.ts";
import { tidyAnswer } from "./tidy-answer.ts";
import { promptFromTokens, type Piece, splitPieces, toTokenIds } from "./tokens.ts";
import { readWrittenCalls } from "./tool-format/read-written-calls.ts";
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
  /** Told of all work; absent: only the metrics are. */
  followWork?: FollowWork | undefined;
}

/** Creates the {@link Inference} of a daemon or a page. */
export function createInference(options: InferenceOptions): Inference {
  return new InferenceService(options);
}

class InferenceService implements Inference {
  readonly #models: Pick<Models, "acquire">;
  readonly #requestTimeoutMs: number;
  readonly #queues: EngineQueues;
  readonly #accounting: RequestAccounting;

  constructor({ models, metrics, config, now = () => performance.now(), followWork }: InferenceOptions) {
    this.#models = models;
    this.#requestTimeoutMs = config.engine.request_timeout;
    this.#queues = new EngineQueues({ maxWaiting: config.models.queue_size, now });
    this.#accounting = new RequestAccounting(metrics, now, followWork);
  }

  get activeRequests(): number {
    return this.#accounting.active;
  }

  async generate(request: InferenceRequest, signal: AbortSignal): Promise<InferenceStream> {
    checkCallDepths(request.input);
    // Disposed in reverse order: first the permit, then the lease, and last the count of requests.
    const held = new DisposableStack();
    const account = held.use(this.#accounting.begin(request.endpoint, request.furtherOf?.follower));
    try {
      const { model, engine } = held.use(
        await this.#models.acquire(request.model || undefined, signal, request.residency),
      );
      account.answeredBy(model.alias);
      const loadMs = account.elapsedMs;
      const resolved = resolveGeneration(request, model, engine.info);
      const wish = {
        tokens: reservedTokens(resolved.request, engine.info),
        bypassQueueLimit: request.furtherOf !== undefined,
      };
      const permit = held.use(await this.#admit(account, engine, model, signal, wish));
      const events = await GenerationStream.begin({
        run: (onEvent, abort) => engine.generate(resolved.request, onEvent, abort),
        readers: readersOf(resolved, request.onTokens),
        deadline: held.use(new Deadline(signal, this.#requestTimeoutMs)),
        held,
        onPrompt: ({ processed, total }) => {
          permit.resize(neededTokens(resolved.request, total, engine.info));
          account.prompted(processed, total);
        },
        onToken: () => account.token(),
        finish: (done) => account.generated(done),
        fail: (error) => account.failed(error, signal),
      });
      const { follower } = account;
      return { model: model.alias, loadMs, sampling: resolved.request.sampling, events, follower };
    } catch (error) {
      held.dispose();
      account.failed(error, signal);
      throw error;
    }
  }

  async embed(request: EmbedRequest, signal: AbortSignal): Promise<EmbedAnswer> {
    const { model, loadMs, results, totalTokens } = await this.#batch(
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
    const { model, results, totalTokens } = await this.#batch(
      request,
      request.documents,
      signal,
      checkReranking,
      (engine, document, abort) => engine.rerank(request.query, document, abort),
    );
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

  async #batch<Item, Result extends { readonly tokens: number }>(
    request: Pick<EmbedRequest, "model" | "residency">,
    items: readonly Item[],
    signal: AbortSignal,
    check: (model: Model) => void,
    call: (engine: Engine, item: Item, signal: AbortSignal) => Promise<Result>,
  ): Promise<{ model: string; loadMs: number; results: Result[]; totalTokens: number }> {
    using held = new DisposableStack();
    const account = held.use(this.#accounting.begin("embeddings"));
    try {
      const { model, engine } = held.use(
        await this.#models.acquire(request.model || undefined, signal, request.residency),
      );
      account.answeredBy(model.alias);
      const loadMs = account.elapsedMs;
      check(model);
      if (items.length === 0) {
        account.computed(0);
        return { model: model.alias, loadMs, results: [], totalTokens: 0 };
      }
      const tokens = embeddedTokens(engine.spec, engine.info);
      const permit = await this.#admit(account, engine, model, signal, { tokens });
      const deadline = held.use(new Deadline(signal, this.#requestTimeoutMs));
      const results = await runBatch(items, { permit, tokens }, deadline.signal, (item, abort) =>
        call(engine, item, abort),
      );
      const totalTokens = results.reduce((sum, each) => sum + each.tokens, 0);
      account.computed(totalTokens);
      return { model: model.alias, loadMs, results, totalTokens };
    } catch (error) {
      account.failed(error, signal);
      throw error;
    }
  }

  async #admit(
    account: RequestAccount,
    engine: Engine,
    { alias }: Model,
    signal: AbortSignal,
    wish: AdmissionRequest,
  ): Promise<Permit> {
    return await account.waitFor(this.#queues.of(engine, alias).acquire(signal, wish));
  }
}

/** The readers of the engine's events according to the model's settings, in order. */
function readersOf(
  { request, reasoningTags, calls, traits, isRaw }: ResolvedGeneration,
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
  if (!isRaw) readers.push(tidyAnswer(traits.endOfTurn, goesOn(request.input)));
  if (!isRaw && traits.textTags) readers.push(dropTextTags(traits.textTags));
  if (reasoningTags) readers.push(splitReasoning(reasoningTags));
  if (calls?.kind === "single") readers.push(firstCallOnly());
  else if (calls?.kind === "forced") readers.push(readForcedCall());
  else if (calls?.kind === "offered") readers.push(readOfferedCall(calls.names));
  else if (calls?.kind === "written") readers.push(readWrittenCalls(calls.format, calls));
  else if (calls) readers.push(splitToolCalls(calls.format, { parallel: calls.parallel }));
  return readers;
}

function goesOn(input: ResolvedGeneration["request"]["input"]): boolean {
  return input.kind === "chat" && input.messages.at(-1)?.role === "assistant";
}
