import type { Config } from "../config/schema.ts";
import type { TokenIds } from "../engine/protocol/calls.ts";
import { checkCallDepths, checkSchemas } from "../engine/request-limits.ts";
import { ServiceError } from "../errors/service-error.ts";
import { type Metrics, NoMetrics } from "../metrics/metrics.ts";
import type { ModelLease, Models } from "../models/models.ts";
import { admissionTokens, withinContext } from "./context-budget.ts";
import { deadlineOf } from "./deadline.ts";
import { TextBatches } from "./embeddings.ts";
import { EngineQueues, preemptionOf, type ModelLoad, NamedSlot, slotWithin } from "./engine-queues.ts";
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
import { stopRepetition } from "./repetition-guard.ts";
import { type FollowWork, RequestAccounting } from "./request-accounting.ts";
import { resolveGeneration } from "./resolve-generation.ts";
import { readyFormat } from "./response-format.ts";
import { readersOf, runGeneration } from "./run-generation.ts";
import { grammarMaker, type MakeOffThread } from "./schema-compiler.ts";
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
  /** Called when an answer of a model was stopped because it ran in circles. */
  onRepetition?: ((model: string) => void) | undefined;
  /** Whether what is asked for now can wait for everything else; absent: never. */
  isBackground?: (() => boolean) | undefined;
  /** Told of all work; absent: only the metrics are. */
  followWork?: FollowWork | undefined;
  /** Makes grammars that take long; absent: they are made here, and everything else waits. */
  makeElsewhere?: MakeOffThread | undefined;
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
  readonly #isBackground: () => boolean;
  readonly #leases: ModelLeases;
  readonly #queues: EngineQueues;
  readonly #accounting: RequestAccounting;
  readonly #uncounted: RequestAccounting;
  readonly #batches: TextBatches;
  readonly #makeElsewhere: MakeOffThread | undefined;

  constructor({
    models,
    metrics,
    config,
    now = () => performance.now(),
    onRepetition = () => undefined,
    isBackground = () => false,
    followWork,
    makeElsewhere,
  }: InferenceOptions) {
    this.#makeElsewhere = makeElsewhere;
    this.#models = models;
    this.#leases = new ModelLeases(models);
    this.#guardsRepetition = config.models.repetition_guard;
    this.#onRepetition = onRepetition;
    this.#now = now;
    this.#isBackground = isBackground;
    this.#requestTimeoutMs = config.engine.request_timeout;
    this.#queues = new EngineQueues({ maxWaiting: config.models.queue_size, now });
    this.#accounting = new RequestAccounting(metrics, now, followWork);
    this.#uncounted = new RequestAccounting(new NoMetrics(), now);
    this.#batches = new TextBatches({
      leases: this.#leases,
      queues: this.#queues,
      accounting: this.#accounting,
      isBackground,
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
    const { signal, onYield } = preemptionOf(client, this.#isBackground());
    checkCallDepths(request.input);
    checkSchemas(request);
    // Disposed in reverse order: first the permit, then the lease, and last the count of requests.
    const held = new DisposableStack();
    // What is still in the making when the request is over, at its deadline for instance, is for nobody.
    const over = held.adopt(new AbortController(), (each) => each.abort());
    const makeGrammar = grammarMaker(this.#makeElsewhere, AbortSignal.any([signal, over.signal]));
    const format = await readyFormat(request.format, makeGrammar);
    const accounting = request.isCounted === false ? this.#uncounted : this.#accounting;
    const account = held.use(accounting.begin(request.endpoint, request.furtherOf?.follower));
    let lease: ModelLease | undefined;
    try {
      lease = await this.#leases.acquire({ ...request, onYield }, signal, held);
      const { model, engine } = lease;
      account.answeredBy(model.alias);
      const loadMs = account.elapsedMs;
      const asked = {
        ...withAdapter(request, lease),
        format,
        slot: slotWithin(request.slot, engine.spec.slots),
      };
      const resolved = await resolveGeneration(asked, model, engine.info, makeGrammar);
      const queue = this.#queues.of(engine, model.alias);
      const wish = {
        tokens: await admissionTokens(engine, resolved.request, queue.running > 0, signal),
        bypassQueueLimit: request.furtherOf !== undefined,
        mayWait: request.mayWait,
        group: adapterGroup(resolved.request.adapterScales),
        slot: resolved.request.slot,
        onYield,
      };
      const slot =
        wish.slot !== undefined && engine.spec.slots > 1
          ? held.use(new NamedSlot(engine, wish.slot, queue))
          : undefined;
      const permit = held.use(await account.waitFor(queue.acquire(signal, wish)));
      const deadline = held.use(deadlineOf(request, signal, this.#requestTimeoutMs));
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
        readers: [...(guard ? [guard] : []), ...readersOf(resolved, request)],
        deadline,
        held,
        onPrompt: ({ processed, total }) => account.prompted(processed, total),
        onToken: () => account.token(),
        finish: (done) => {
          const limitedBy = isRepetition
            ? "repetition"
            : answerLimit(done, resolved.tokenLimit, resolved.request.sampling);
          return { ...account.generated(done, request.given?.length), ...(limitedBy && { limitedBy }) };
        },
        fail: (error) => account.failed(error, client),
      });
      const { follower } = account;
      const { request: answered, warnings } = resolved;
      return { model: model.alias, loadMs, sampling: answered.sampling, warnings, events, follower };
    } catch (error) {
      held.dispose();
      // One that may not wait goes elsewhere: it has not failed.
      account.failed(request.mayWait === false ? undefined : error, client);
      throw explained(error, lease);
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

/** A name such as "base:adapter" chooses an adapter, unless the request chooses itself. */
function withAdapter(request: InferenceRequest, { adapter, model }: ModelLease): InferenceRequest {
  if (adapter === undefined || request.adapters) return request;
  const scale = model.adapters.find(({ name }) => name === adapter)?.scale || 1;
  return { ...request, adapters: [{ name: adapter, scale }] };
}

/** An error about a prompt that is too long tells what to do about it. */
function explained(error: unknown, lease: ModelLease | undefined): unknown {
  if (!(error instanceof ServiceError) || !error.contextExcess || !lease?.explainExcess) return error;
  const { contextExcess } = error;
  const message = lease.explainExcess(contextExcess);
  return new ServiceError(error.code, message, { cause: error, contextExcess });
}

/**
 * Makes requests load the models that they name: a request with a residency, even an empty one, loads its model.
 */
export function loadOnDemand(inference: Inference): Inference {
  return {
    get activeRequests() {
      return inference.activeRequests;
    },
    get loads() {
      return inference.loads;
    },
    generate: (request, signal) => inference.generate({ residency: {}, ...request }, signal),
    embed: (request, signal) => inference.embed({ residency: {}, ...request }, signal),
    rerank: (request, signal) => inference.rerank({ residency: {}, ...request }, signal),
    score: (request, signal) => inference.score({ residency: {}, ...request }, signal),
    tokenize: (request, signal) => inference.tokenize({ residency: {}, ...request }, signal),
    detokenize: (request, signal) => inference.detokenize({ residency: {}, ...request }, signal),
    pieces: (request, signal) => inference.pieces({ residency: {}, ...request }, signal),
    promptFromTokens: (request, signal) => inference.promptFromTokens({ residency: {}, ...request }, signal),
  };
}
