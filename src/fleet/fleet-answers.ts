import type { Logger } from "pino";
import type { Config } from "../config/schema.ts";
import { Deadline } from "../inference/deadline.ts";
import type { FollowWork } from "../inference/follow-work.ts";
import type { AnsweringMachine, Inference, InferenceStream } from "../inference/inference.ts";
import { RequestAccounting } from "../inference/request-accounting.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { AnswerTokens } from "./answer-tokens.ts";
import type { Dispatch, FoundModel } from "./dispatch.ts";
import { type Giving, MovingAnswer } from "./moving-answer.ts";
import type { Place } from "./places.ts";
import { type Mark, promptMarks } from "./prompt-memory.ts";
import { beginRemote, encodeGenerate, openCall, type SentRequest } from "./remote-answers.ts";
import type { RemoteCalls } from "./remote-calls.ts";
import { Transcript } from "./transcript.ts";

const SEEDS = 2 ** 32;

export interface FleetAnswersOptions {
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
  readonly marks: readonly Mark[];
  readonly transcript: Transcript;
  readonly tokens: AnswerTokens;
}

/** Answers of the machine that suits best, which go on elsewhere when it is gone. */
export class FleetAnswers {
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
    const marks = promptMarks(model.files, request);
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
  async #give(place: Place, model: FoundModel, request: SentRequest, signal: AbortSignal): Promise<Giving> {
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
    place: Place,
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
