import type { Logger } from "pino";
import type { z } from "zod";
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
import { type FollowWork, RequestAccounting } from "../inference/request-accounting.ts";
import { readyFormat } from "../inference/response-format.ts";
import { grammarMaker, type MakeOffThread } from "../inference/schema-compiler.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { SHORT_CALLS, type ShortCall } from "./call-schemas.ts";
import type { Dispatch, FoundModel } from "./dispatch.ts";
import { AnswerTokens, type Giving, MovingAnswer } from "./failover.ts";
import type { Candidate } from "./members.ts";
import { type PrefixHash, prefixHashes } from "./prefix-affinity.ts";
import {
  beginRemote,
  encodeGenerate,
  encodeShort,
  openCall,
  type SentRequest,
  shortAnswer,
} from "./remote-answers.ts";
import type { RemoteCalls } from "./remote-calls.ts";
import { Transcript } from "./transcript.ts";

/** The others are quick, and run beside what has a slot. */
const NEEDS_SLOT: ReadonlySet<ShortCall> = new Set<ShortCall>(["embed", "rerank", "score"]);

interface FleetInferenceOptions extends FleetAnswersOptions {
  readonly local: Inference;
  /** Whether what is asked for now can wait for everything else. */
  readonly isBackground: () => boolean;
  readonly makeElsewhere: MakeOffThread;
}

/** What requests other than generations have in common. */
interface ShortRequest {
  readonly model?: string | undefined;
  readonly mayWait?: boolean | undefined;
}

/** The inference of all machines together: this one's where that is best or the only one, else another one's. */
export class FleetInference implements Inference {
  readonly #options: FleetInferenceOptions;
  readonly #answers: FleetAnswers;

  constructor(options: FleetInferenceOptions) {
    this.#options = options;
    this.#answers = new FleetAnswers(options);
  }

  get activeRequests(): number {
    const { local, dispatch } = this.#options;
    return local.activeRequests + this.#answers.active + dispatch.waiting;
  }

  get loads(): Inference["loads"] {
    return this.#options.local.loads;
  }

  async generate(request: InferenceRequest, signal: AbortSignal): Promise<InferenceStream> {
    const { local, makeElsewhere } = this.#options;
    const arrivedAt = performance.now();
    const model = request.slot === undefined ? await this.#find(request.model) : undefined;
    if (!model) return await this.#alone(request, local.generate(request, signal));
    checkCallDepths(request.input);
    checkSchemas(request);
    // Another machine is sent the grammar, not what it is made of.
    const format = await readyFormat(request.format, grammarMaker(makeElsewhere, signal));
    return await this.#answers.generate(model, { ...request, format }, arrivedAt, signal);
  }

  async embed(...[request, signal]: Parameters<Inference["embed"]>): ReturnType<Inference["embed"]> {
    const { local } = this.#options;
    return await this.#short("embed", request, signal, SHORT_CALLS.embed.answer, (each) =>
      local.embed(each, signal),
    );
  }

  async rerank(...[request, signal]: Parameters<Inference["rerank"]>): ReturnType<Inference["rerank"]> {
    const { local } = this.#options;
    return await this.#short("rerank", request, signal, SHORT_CALLS.rerank.answer, (each) =>
      local.rerank(each, signal),
    );
  }

  async score(...[request, signal]: Parameters<Inference["score"]>): ReturnType<Inference["score"]> {
    const { local } = this.#options;
    return await this.#short("score", request, signal, SHORT_CALLS.score.answer, (each) =>
      local.score(each, signal),
    );
  }

  async tokenize(...[request, signal]: Parameters<Inference["tokenize"]>): ReturnType<Inference["tokenize"]> {
    const { local } = this.#options;
    return await this.#short("tokenize", request, signal, SHORT_CALLS.tokenize.answer, (each) =>
      local.tokenize(each, signal),
    );
  }

  async pieces(...[request, signal]: Parameters<Inference["pieces"]>): ReturnType<Inference["pieces"]> {
    const { local } = this.#options;
    return await this.#short("pieces", request, signal, SHORT_CALLS.pieces.answer, (each) =>
      local.pieces(each, signal),
    );
  }

  async detokenize(
    ...[request, signal]: Parameters<Inference["detokenize"]>
  ): ReturnType<Inference["detokenize"]> {
    const { local } = this.#options;
    return await this.#short("detokenize", request, signal, SHORT_CALLS.detokenize.answer, (each) =>
      local.detokenize(each, signal),
    );
  }

  async promptFromTokens(
    ...[request, signal]: Parameters<Inference["promptFromTokens"]>
  ): ReturnType<Inference["promptFromTokens"]> {
    const { local } = this.#options;
    return await this.#short(
      "promptFromTokens",
      request,
      signal,
      SHORT_CALLS.promptFromTokens.answer,
      (each) => local.promptFromTokens(each, signal),
    );
  }

  /** The model of a name; undefined if this machine decides alone, as where it can do in the background what it has to. */
  async #find(name: string | undefined): Promise<FoundModel | undefined> {
    const { dispatch, isBackground } = this.#options;
    const model = await dispatch.find(name);
    return model && isBackground() && dispatch.isHere(model) ? undefined : model;
  }

  /** What this machine answers alone. @throws fleet_unreachable for a model that others may have */
  async #alone<Answer>(
    { model, slot }: ShortRequest & { readonly slot?: number | undefined },
    answer: Promise<Answer>,
  ): Promise<Answer> {
    try {
      return await answer;
    } catch (error) {
      const isUnknown = error instanceof ServiceError && error.code === "model_not_found";
      const found = isUnknown && slot !== undefined ? await this.#find(model) : undefined;
      if (found) throw slotElsewhere(found.alias, error);
      throw (isUnknown ? this.#options.dispatch.missing(model) : undefined) ?? error;
    }
  }

  async #short<Request extends ShortRequest, Answer>(
    op: ShortCall,
    request: Request,
    signal: AbortSignal,
    schema: z.ZodType<Answer>,
    locally: (request: Request) => Promise<Answer>,
  ): Promise<Answer> {
    const { dispatch, calls, config } = this.#options;
    const model = await this.#find(request.model);
    if (!model) return await this.#alone(request, locally(request));
    const needsSlot = NEEDS_SLOT.has(op);
    const work = async (place: Candidate): Promise<{ answer: Answer }> => {
      if (place.isLocal) return { answer: await locally({ ...request, mayWait: false }) };
      using deadline = new Deadline(signal, config.engine.request_timeout);
      const call = openCall(calls, place, model, encodeShort(op, request), needsSlot, deadline.signal);
      try {
        return { answer: await shortAnswer(call, schema) };
      } finally {
        call.end();
      }
    };
    const { place, result } = await dispatch.begin(model, work, { marks: [], signal, needsSlot });
    if (!place.isLocal) dispatch.ended(place);
    return result.answer;
  }
}

function slotElsewhere(alias: string, cause: unknown): ServiceError {
  return new ServiceError(
    "unsupported_feature",
    `A request that names a slot is answered where it arrives, and "${alias}" is on other machines of the fleet: leave the slot out, or ask there.`,
    { param: "id_slot", cause },
  );
}

const SEEDS = 2 ** 32;

interface FleetAnswersOptions {
  /** Of this machine alone. */
  readonly local: Pick<Inference, "generate">;
  readonly dispatch: Dispatch;
  readonly calls: RemoteCalls;
  readonly metrics: Metrics;
  readonly followWork: FollowWork;
  readonly config: { readonly engine: Pick<Config["engine"], "request_timeout"> };
  readonly logger: Logger;
}

/** What a machine needs to begin an answer, or to go on with it. */
interface Wish {
  readonly model: FoundModel;
  readonly request: SentRequest;
  readonly marks: readonly PrefixHash[];
  readonly transcript: Transcript;
  readonly tokens: AnswerTokens;
}

/** Answers of the machine that suits best, which go on elsewhere when it is gone. */
class FleetAnswers {
  readonly #options: FleetAnswersOptions;
  readonly #accounting: RequestAccounting;

  constructor(options: FleetAnswersOptions) {
    this.#options = options;
    this.#accounting = new RequestAccounting(options.metrics, () => performance.now(), options.followWork);
  }

  /** Answers of other machines. */
  get active(): number {
    return this.#accounting.active;
  }

  /** @param arrivedAt when the request did, in milliseconds */
  async generate(
    model: FoundModel,
    request: SentRequest,
    arrivedAt: number,
    signal: AbortSignal,
  ): Promise<InferenceStream> {
    const [transcript, tokens] = [new Transcript(), new AnswerTokens()];
    const movable = repeatable(request, transcript, tokens);
    const marks = prefixHashes(model.files, request);
    const { place, result } = await this.#options.dispatch.begin<Giving>(
      model,
      async (each) => await this.#give(each, model, each.isLocal ? request : movable, signal),
      { marks, signal, isFurther: request.furtherOf !== undefined },
    );
    if (place.isLocal) return result.stream;
    const wish = { model, request: movable, marks, transcript, tokens };
    return this.#moving(wish, place, result, arrivedAt, signal);
  }

  /** Has a machine begin to answer. */
  async #give(
    place: Candidate,
    model: FoundModel,
    request: SentRequest,
    signal: AbortSignal,
  ): Promise<Giving> {
    const { local, calls, dispatch } = this.#options;
    if (place.isLocal) {
      const stream = await local.generate({ ...request, mayWait: false }, signal);
      return { stream, machine: place.machineName, leave: () => void stream.events.return?.() };
    }
    const call = openCall(calls, place, model, encodeGenerate(request), true, signal);
    try {
      const stream = await beginRemote(call, model.alias, request);
      let isLeft = false;
      const leave = (): void => {
        call.end();
        if (!isLeft) dispatch.ended(place);
        isLeft = true;
      };
      return { stream, machine: place.machineName, leave };
    } catch (error) {
      call.end();
      throw error;
    }
  }

  #moving(
    { model, request, marks, transcript, tokens }: Wish,
    place: Candidate,
    giving: Giving,
    arrivedAt: number,
    signal: AbortSignal,
  ): InferenceStream {
    const { dispatch, config, logger, metrics } = this.#options;
    const held = new DisposableStack();
    const account = held.use(
      this.#accounting.begin(request.endpoint, request.furtherOf?.follower, arrivedAt),
    );
    const deadline = held.use(new Deadline(signal, config.engine.request_timeout));
    account.answeredBy(model.alias);
    let current = place;
    const again = async (): Promise<Giving> => {
      const hasTold = request.isWhole !== true && !transcript.isEmpty;
      const further = { ...request, ...tokens.begun, isCounted: false };
      const begun = await dispatch.begin<Giving>(
        model,
        async (each) => {
          tokens.rewind();
          return await this.#give(each, model, further, deadline.signal);
        },
        { marks, signal: deadline.signal, continues: { engine: place.engine, hasTold } },
      );
      current = begun.place;
      return begun.result;
    };
    const { follower } = account;
    const elsewhere = (): AnsweringMachine => ({
      machine: current.processor,
      engineSha256: current.engine,
      gpuLayers: current.gpuLayers,
    });
    const events = new MovingAnswer({
      first: giving,
      again,
      transcript,
      tokens,
      account,
      metrics,
      deadline,
      signal,
      held,
      logger,
    });
    return { ...giving.stream, events, follower, elsewhere };
  }
}

/** A request whose answer can go on elsewhere: with a seed, with its tokens, and without telling a token twice. */
function repeatable(request: SentRequest, transcript: Transcript, answer: AnswerTokens): SentRequest {
  const { defaults, onTokens } = request;
  const sampling = { seed: Math.floor(Math.random() * SEEDS), ...defaults.sampling };
  return {
    ...request,
    defaults: { ...defaults, sampling },
    ...answer.begun,
    onTokens: onTokens && ((tokens) => onTokens(transcript.newTokens(tokens))),
    onChosen: (tokens) => answer.take(tokens),
  };
}
