import type { Config } from "../config/schema.ts";
import type { TokenIds } from "../engine/protocol/calls.ts";
import { checkCallDepths, checkSchemas } from "../engine/request-limits.ts";
import { ServiceError } from "../errors/service-error.ts";
import { type Metrics, NoMetrics } from "../metrics/metrics.ts";
import type { ModelLease, Models } from "../models/models.ts";
import { admissionTokens, withinContext } from "./context-budget.ts";
import { deadlineOf } from "./deadline.ts";
import { TextBatches } from "./embeddings.ts";
import { EngineQueues, preemptionFor, type ModelLoad, ReservedSlot, wrapSlot } from "./engine-queues.ts";
import { GenerationStream } from "./generation-stream.ts";
import {
  answerLimit,
  type DetokenizeRequest,
  type EmbedAnswer,
  type EmbedRequest,
  type Inference,
  type InferenceRequest,
  type InferenceStream,
  type PromptFromTokensRequest,
  type RerankAnswer,
  type RerankRequest,
  type ScoreAnswer,
  type ScoreRequest,
  type TokenizeRequest,
} from "./inference.ts";
import { adapterGroup } from "./lora-adapters.ts";
import { ModelLeases } from "./model-leases.ts";
import { type PreparedRequest, prepareRequest } from "./prepare-request.ts";
import { stopRepetition } from "./repetition-guard.ts";
import { type ObserveWork, RequestAccounting } from "./request-accounting.ts";
import { resolveGeneration } from "./resolve-generation.ts";
import { filtersFor, runGeneration } from "./run-generation.ts";
import { grammarCompiler, type CompileOffThread } from "./schema-compiler.ts";
import { type TokenText, promptFromTokens, splitTokenTexts, toTokenIds } from "./tokens.ts";

interface InferenceOptions {
  models: Pick<Models, "acquire">;
  metrics: Metrics;
  config: {
    readonly models: Pick<Config["models"], "queue_size" | "repetition_guard">;
    readonly engine: Pick<Config["engine"], "request_timeout">;
  };
  /** Milliseconds since any origin. */
  now?: () => number;
  /** Called when an answer of a model was stopped because it repeated itself. */
  onRepetition?: ((model: string) => void) | undefined;
  /** Returns true if the current request has low priority; absent: never. */
  isLowPriority?: (() => boolean) | undefined;
  /** Observes all requests; absent: only the metrics do. */
  observeWork?: ObserveWork | undefined;
  /** Compiles slow grammars; absent: they are compiled on this thread, which blocks it. */
  compileOffThread?: CompileOffThread | undefined;
}

/** Creates the {@link Inference} of a daemon or a page. */
export function createInference(options: InferenceOptions): Inference {
  return new InferenceService(options);
}

class InferenceService implements Inference {
  readonly #models: Pick<Models, "acquire">;
  readonly #requestTimeoutMs: number;
  readonly #guardsRepetition: boolean;
  readonly #onRepetition: (model: string) => void;
  readonly #now: () => number;
  readonly #isLowPriority: () => boolean;
  readonly #leases: ModelLeases;
  readonly #queues: EngineQueues;
  readonly #accounting: RequestAccounting;
  readonly #uncounted: RequestAccounting;
  readonly #batches: TextBatches;
  readonly #compileOffThread: CompileOffThread | undefined;

  constructor({
    models,
    metrics,
    config,
    now = () => performance.now(),
    onRepetition = () => undefined,
    isLowPriority = () => false,
    observeWork,
    compileOffThread,
  }: InferenceOptions) {
    this.#compileOffThread = compileOffThread;
    this.#models = models;
    this.#leases = new ModelLeases(models);
    this.#guardsRepetition = config.models.repetition_guard;
    this.#onRepetition = onRepetition;
    this.#now = now;
    this.#isLowPriority = isLowPriority;
    this.#requestTimeoutMs = config.engine.request_timeout;
    this.#queues = new EngineQueues({ maxWaiting: config.models.queue_size, now });
    this.#accounting = new RequestAccounting(metrics, now, observeWork);
    this.#uncounted = new RequestAccounting(new NoMetrics(), now);
    this.#batches = new TextBatches({
      leases: this.#leases,
      queues: this.#queues,
      accounting: this.#accounting,
      isLowPriority,
      requestTimeoutMs: this.#requestTimeoutMs,
    });
  }

  get activeRequests(): number {
    return this.#accounting.active;
  }

  get loads(): readonly ModelLoad[] {
    return this.#queues.loads;
  }

  async generate(request: InferenceRequest, client: AbortSignal): Promise<InferenceStream> {
    const { signal, onPreempt } = preemptionFor(client, this.#isLowPriority());
    checkCallDepths(request.input);
    checkSchemas(request);
    // Disposed in reverse order: the permit, then the lease, and last the count of requests.
    const resources = new DisposableStack();
    // A grammar that is still being compiled when the request ends, such as at its deadline, is cancelled.
    const ended = resources.adopt(new AbortController(), (each) => each.abort());
    const compileGrammar = grammarCompiler(this.#compileOffThread, AbortSignal.any([signal, ended.signal]));
    const prepared = await prepareRequest(request, compileGrammar);
    const isCounted = request.origin !== "dispatcher" || !request.continuation;
    const accounting = isCounted ? this.#accounting : this.#uncounted;
    const account = resources.use(accounting.begin(request.endpoint, request.choiceOf?.observer));
    let lease: ModelLease | undefined;
    try {
      lease = await this.#leases.acquire({ ...request, onPreempt }, signal, resources);
      const { model, engine } = lease;
      account.modelLoaded(model.alias);
      const loadMs = account.elapsedMs;
      const effective = {
        ...withAdapter(prepared, lease),
        slot: wrapSlot(request.slot, engine.spec.slots),
      };
      const resolved = await resolveGeneration(effective, model, engine.info, compileGrammar);
      const queue = this.#queues.queueFor(engine, model.alias);
      const admission = {
        tokens: await admissionTokens(engine, resolved.request, queue.running > 0, signal),
        bypassQueueLimit: request.choiceOf !== undefined,
        mayWait: request.origin === undefined,
        group: adapterGroup(resolved.request.adapterScales),
        slot: resolved.request.slot,
        onPreempt,
      };
      const slot =
        admission.slot !== undefined && engine.spec.slots > 1
          ? resources.use(new ReservedSlot(engine, admission.slot, queue))
          : undefined;
      const permit = resources.use(await account.waitFor(queue.acquire(signal, admission)));
      const deadline = resources.use(deadlineOf(request, signal, this.#requestTimeoutMs));
      if (slot) await account.waitFor(slot.wait(permit, deadline.signal));
      let isRepetition = false;
      const onRepetition = (): void => {
        isRepetition = true;
        this.#onRepetition(model.alias);
      };
      const guard =
        (resolved.repetitionGuard ?? this.#guardsRepetition)
          ? stopRepetition({ onRepetition, now: this.#now })
          : undefined;
      const events = await GenerationStream.begin({
        run: (onEvent, abort) => runGeneration(withinContext(engine, permit), resolved, onEvent, abort),
        filters: [...(guard ? [guard] : []), ...filtersFor(resolved, request)],
        deadline,
        resources,
        onPrompt: ({ processed, total }) => account.promptComputed(processed, total),
        onToken: () => account.token(),
        finish: (done) => {
          const limitedBy = isRepetition
            ? "repetition"
            : answerLimit(done, resolved.tokenLimit, resolved.request.sampling);
          return {
            ...account.generated(done, request.continuation?.given?.length),
            ...(limitedBy && { limitedBy }),
          };
        },
        fail: (error) => account.failed(error, client),
      });
      const { observer } = account;
      const { request: resolvedRequest, warnings } = resolved;
      return { model: model.alias, loadMs, sampling: resolvedRequest.sampling, warnings, events, observer };
    } catch (error) {
      resources.dispose();
      // A request that may run on another machine has not failed yet.
      account.failed(request.origin === undefined ? error : undefined, client);
      throw withExcessExplained(error, lease);
    }
  }

  async embed(request: EmbedRequest, signal: AbortSignal): Promise<EmbedAnswer> {
    return await this.#batches.embed(request, signal);
  }

  async rerank(request: RerankRequest, signal: AbortSignal): Promise<RerankAnswer> {
    return await this.#batches.rerank(request, signal);
  }

  async score(request: ScoreRequest, signal: AbortSignal): Promise<ScoreAnswer> {
    return await this.#batches.score(request, signal);
  }

  async tokenize(request: TokenizeRequest, signal: AbortSignal): Promise<TokenIds> {
    const { model, text, options, residency } = request;
    using lease = await this.#models.acquire(model || undefined, signal, residency);
    return await lease.engine.tokenize(text, options, signal);
  }

  async pieces({ model, tokens, residency }: DetokenizeRequest, signal: AbortSignal): Promise<TokenText[]> {
    using lease = await this.#models.acquire(model || undefined, signal, residency);
    const ids = toTokenIds(tokens, "tokens");
    return splitTokenTexts(ids, await lease.engine.pieces(ids, signal));
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
}

/** Applies the adapter of a model name such as "base:adapter", unless the request has its own adapters. */
function withAdapter(request: PreparedRequest, { adapter, model }: ModelLease): PreparedRequest {
  if (adapter === undefined || request.adapters) return request;
  const scale = model.adapters.find(({ name }) => name === adapter)?.scale || 1;
  return { ...request, adapters: [{ name: adapter, scale }] };
}

/** Replaces the message of an error about a prompt that is too long with one that says what to do. */
function withExcessExplained(error: unknown, lease: ModelLease | undefined): unknown {
  if (!(error instanceof ServiceError) || !error.contextExcess || !lease?.explainExcess) return error;
  const { contextExcess } = error;
  const message = lease.explainExcess(contextExcess);
  return new ServiceError(error.code, message, { cause: error, contextExcess });
}

/**
 * Makes every request load its model: a request with a residency, even an empty one, loads the model that it names.
 */
export function loadOnDemand(inference: Inference): Inference {
  return new Proxy(inference, {
    get(target, key) {
      const member: unknown = Reflect.get(target, key, target);
      return typeof member === "function"
        ? (request: object, signal: AbortSignal): unknown =>
            Reflect.apply(member, target, [{ residency: {}, ...request }, signal])
        : member;
    },
  });
}
