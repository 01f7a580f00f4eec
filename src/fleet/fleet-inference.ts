import type { Logger } from "pino";
import type { Config } from "../config/schema.ts";
import { checkCallDepths, checkSchemas } from "../engine/request-limits.ts";
import { ServiceError } from "../errors/service-error.ts";
import { Deadline } from "../inference/deadline.ts";
import type {
  AnsweringMachine,
  Inference,
  InferenceRequest,
  InferenceStream,
} from "../inference/inference.ts";
import { type ObserveWork, RequestAccounting } from "../inference/request-accounting.ts";
import { prepareRequest } from "../inference/prepare-request.ts";
import { grammarCompiler, type CompileOffThread } from "../inference/schema-compiler.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { SHORT_CALLS, type ShortCall } from "./call-schemas.ts";
import type { Dispatch, FleetModel } from "./dispatch.ts";
import { AnswerTokens, type RunningAnswer, FailoverAnswer } from "./failover.ts";
import type { Candidate } from "./members.ts";
import { prefixHashes } from "./prefix-affinity.ts";
import {
  beginRemote,
  encodeGenerate,
  encodeShort,
  openCall,
  type RemoteRequest,
  shortAnswer,
} from "./remote-answers.ts";
import type { RemoteCalls } from "./remote-calls.ts";
import { Transcript } from "./transcript.ts";

/** Calls that occupy a slot; the others are quick and run beside it. */
const NEEDS_SLOT: ReadonlySet<ShortCall> = new Set<ShortCall>(["embed", "rerank", "score"]);

interface FleetInferenceOptions {
  /** Inference of this machine only. */
  readonly local: Inference;
  readonly dispatch: Dispatch;
  readonly calls: RemoteCalls;
  readonly metrics: Metrics;
  readonly followWork: ObserveWork;
  readonly config: { readonly engine: Pick<Config["engine"], "request_timeout"> };
  readonly logger: Logger;
  /** Returns true if the current request has low priority. */
  readonly isLowPriority: () => boolean;
  readonly makeOffThread: CompileOffThread;
}

/** Fields of all requests other than generations. */
interface ShortRequest {
  readonly model?: string | undefined;
  readonly origin?: InferenceRequest["origin"];
}

/**
 * Inference of all machines: each request runs on the most suitable one. An answer continues on another one if its machine
 * is lost.
 */
export class FleetInference implements Inference {
  readonly #options: FleetInferenceOptions;
  /** Accounts of answers of other machines. */
  readonly #accounting: RequestAccounting;

  constructor(options: FleetInferenceOptions) {
    this.#options = options;
    this.#accounting = new RequestAccounting(options.metrics, () => performance.now(), options.followWork);
  }

  get activeRequests(): number {
    const { local, dispatch } = this.#options;
    return local.activeRequests + this.#accounting.active + dispatch.waiting;
  }

  get loads(): Inference["loads"] {
    return this.#options.local.loads;
  }

  async generate(request: InferenceRequest, signal: AbortSignal): Promise<InferenceStream> {
    const { local, makeOffThread } = this.#options;
    const arrivedAt = performance.now();
    const model = request.slot === undefined ? await this.#find(request.model) : undefined;
    if (!model) return await this.#locally(request, local.generate(request, signal));
    checkCallDepths(request.input);
    checkSchemas(request);
    // The schema is compiled here; another machine receives the grammar.
    const prepared = await prepareRequest(request, grammarCompiler(makeOffThread, signal));
    return await this.#generate(model, prepared, arrivedAt, signal);
  }

  readonly embed = this.#onAnyMachine("embed");
  readonly rerank = this.#onAnyMachine("rerank");
  readonly score = this.#onAnyMachine("score");
  readonly tokenize = this.#onAnyMachine("tokenize");
  readonly pieces = this.#onAnyMachine("pieces");
  readonly detokenize = this.#onAnyMachine("detokenize");
  readonly promptFromTokens = this.#onAnyMachine("promptFromTokens");

  /**
   * Finds the model of a name; undefined if this machine handles the request alone, as for low priority and a local
   * model.
   */
  async #find(name: string | undefined): Promise<FleetModel | undefined> {
    const { dispatch, isLowPriority } = this.#options;
    const model = await dispatch.find(name);
    return model && isLowPriority() && dispatch.isLocal(model) ? undefined : model;
  }

  /** Answers on this machine only. @throws fleet_unreachable for a model that other machines may have */
  async #locally<Answer>(
    { model, slot }: ShortRequest & { readonly slot?: number | undefined },
    answer: Promise<Answer>,
  ): Promise<Answer> {
    try {
      return await answer;
    } catch (error) {
      const isUnknown = error instanceof ServiceError && error.code === "model_not_found";
      const found = isUnknown && slot !== undefined ? await this.#find(model) : undefined;
      if (found) throw slotOnAnotherMachine(found.alias, error);
      throw (isUnknown ? this.#options.dispatch.missingModelError(model) : undefined) ?? error;
    }
  }

  /** Returns the method of all calls of a kind, which run on the most suitable machine. */
  #onAnyMachine<Op extends ShortCall>(op: Op): Inference[Op] {
    const call = async (request: ShortRequest, signal: AbortSignal): Promise<unknown> => {
      const { local, dispatch, calls, config } = this.#options;
      const locally = async (each: ShortRequest): Promise<unknown> =>
        await Reflect.apply(local[op], local, [each, signal]);
      const model = await this.#find(request.model);
      if (!model) return await this.#locally(request, locally(request));
      const needsSlot = NEEDS_SLOT.has(op);
      const work = async (candidate: Candidate): Promise<{ answer: unknown }> => {
        if (candidate.isLocal) return { answer: await locally({ ...request, origin: "dispatcher" }) };
        using deadline = new Deadline(signal, config.engine.request_timeout);
        const remote = openCall(
          calls,
          candidate,
          model,
          encodeShort(op, request),
          needsSlot,
          deadline.signal,
        );
        try {
          return { answer: await shortAnswer<unknown>(remote, SHORT_CALLS[op].answer) };
        } finally {
          remote.end();
        }
      };
      const { candidate, result } = await dispatch.begin(model, work, {
        prefixHashes: [],
        signal,
        needsSlot,
      });
      if (!candidate.isLocal) dispatch.ended(candidate);
      return result.answer;
    };
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- its schema has checked the answer
    return call as Inference[Op];
  }

  /** @param arrivedAt arrival of the request in milliseconds */
  async #generate(
    model: FleetModel,
    localRequest: RemoteRequest,
    arrivedAt: number,
    signal: AbortSignal,
  ): Promise<InferenceStream> {
    const { dispatch, config, logger, metrics } = this.#options;
    const [transcript, tokens] = [new Transcript(), new AnswerTokens()];
    const request = withTokenReports(localRequest, transcript, tokens);
    const hashes = prefixHashes(model.files, request);
    const { candidate: first, result } = await dispatch.begin<RunningAnswer>(
      model,
      async (each) => await this.#begin(each, model, each.isLocal ? localRequest : request, signal),
      { prefixHashes: hashes, signal, isFurther: request.choiceOf !== undefined },
    );
    if (first.isLocal) return result.stream;
    const resources = new DisposableStack();
    const account = resources.use(
      this.#accounting.begin(request.endpoint, request.choiceOf?.observer, arrivedAt),
    );
    const deadline = resources.use(new Deadline(signal, config.engine.request_timeout));
    account.modelLoaded(model.alias);
    let current = first;
    const restart = async (): Promise<RunningAnswer> => {
      const hasOutput = request.isBuffered !== true && !transcript.isEmpty;
      const remainingRequest = { ...request, continuation: tokens.continuation };
      const continued = await dispatch.begin<RunningAnswer>(
        model,
        async (each) => {
          tokens.rewind();
          return await this.#begin(each, model, remainingRequest, deadline.signal);
        },
        { prefixHashes: hashes, signal: deadline.signal, continues: { engine: first.engine, hasOutput } },
      );
      current = continued.candidate;
      return continued.result;
    };
    const remoteMachine = (): AnsweringMachine => ({
      machine: current.processor,
      engineSha256: current.engine,
      gpuLayers: current.gpuLayers,
    });
    const events = new FailoverAnswer({
      first: result,
      restart,
      transcript,
      tokens,
      account,
      metrics,
      deadline,
      signal,
      resources,
      logger,
    });
    return { ...result.stream, events, observer: account.observer, remoteMachine };
  }

  /** Begins an answer on a machine. */
  async #begin(
    candidate: Candidate,
    model: FleetModel,
    request: RemoteRequest,
    signal: AbortSignal,
  ): Promise<RunningAnswer> {
    const { local, calls, dispatch } = this.#options;
    if (candidate.isLocal) {
      const stream = await local.generate({ ...request, origin: "dispatcher" }, signal);
      return { stream, machine: candidate.machineName, stop: () => void stream.events.return?.() };
    }
    const call = openCall(calls, candidate, model, encodeGenerate(request), true, signal);
    try {
      const stream = await beginRemote(call, model.alias, request);
      let isLeft = false;
      const stop = (): void => {
        call.end();
        if (!isLeft) dispatch.ended(candidate);
        isLeft = true;
      };
      return { stream, machine: candidate.machineName, stop };
    } catch (error) {
      call.end();
      throw error;
    }
  }
}

function slotOnAnotherMachine(alias: string, cause: unknown): ServiceError {
  return new ServiceError(
    "unsupported_feature",
    `A request that names a slot is answered where it arrives, and "${alias}" is on other machines of the fleet: leave the slot out, or send the request there.`,
    { param: "id_slot", cause },
  );
}

const SEEDS = 2 ** 32;

/** Prepares a request for failover: with a fixed seed, with token reports, and with each token reported once only. */
function withTokenReports(
  request: RemoteRequest,
  transcript: Transcript,
  answer: AnswerTokens,
): RemoteRequest {
  const { defaults, onLogprobs: onTokens } = request;
  const sampling = { seed: Math.floor(Math.random() * SEEDS), ...defaults.sampling };
  return {
    ...request,
    defaults: { ...defaults, sampling },
    continuation: answer.continuation,
    onLogprobs: onTokens && ((tokens) => onTokens(transcript.newTokens(tokens))),
  };
}
