import type { Logger } from "pino";
import type { z } from "zod";
import type { Config } from "../config/schema.ts";
import { checkCallDepths, checkSchemas } from "../engine/request-limits.ts";
import { ServiceError } from "../errors/service-error.ts";
import { Deadline } from "../inference/deadline.ts";
import type { FollowWork } from "../inference/follow-work.ts";
import type {
  AnsweringMachine,
  Inference,
  InferenceRequest,
  InferenceStream,
} from "../inference/inference.ts";
import { RequestAccounting } from "../inference/request-accounting.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { SHORT_CALLS, type ShortCall } from "./call-schemas.ts";
import type { Dispatch, FoundModel } from "./dispatch.ts";
import { type Giving, MovingAnswer } from "./moving-answer.ts";
import type { Place } from "./places.ts";
import { type Mark, promptMarks } from "./prompt-memory.ts";
import { beginRemote, encodeGenerate, encodeShort, shortAnswer } from "./remote-answers.ts";
import type { RemoteCall, RemoteCalls } from "./remote-calls.ts";
import { Transcript } from "./transcript.ts";

const SEEDS = 2 ** 32;
/** The others are quick, and run beside what has a slot. */
const NEEDS_SLOT: ReadonlySet<ShortCall> = new Set<ShortCall>(["embed", "rerank", "score"]);

export interface FleetInferenceOptions {
  /** Of this machine alone. */
  readonly local: Inference;
  readonly dispatch: Dispatch;
  readonly calls: RemoteCalls;
  readonly metrics: Metrics;
  readonly followWork: FollowWork;
  readonly config: { readonly engine: Pick<Config["engine"], "request_timeout"> };
  readonly logger: Logger;
  /** Whether what is asked for now can wait for everything else. */
  readonly isBackground: () => boolean;
}

/** What requests other than generations have in common. */
interface ShortRequest {
  readonly model?: string | undefined;
  readonly mayWait?: boolean | undefined;
}

/** The inference of all machines together: this one's where that is best or the only one, else another one's. */
export class FleetInference implements Inference {
  readonly #options: FleetInferenceOptions;
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
    const { local, dispatch } = this.#options;
    const arrivedAt = performance.now();
    const model = request.slot === undefined ? await this.#find(request.model) : undefined;
    if (!model) return await this.#alone(request, local.generate(request, signal));
    checkCallDepths(request.input);
    checkSchemas(request);
    const marks = promptMarks(model.files, request);
    const transcript = new Transcript();
    const movable = repeatable(request, transcript);
    const { place, result } = await dispatch.begin<Giving>(
      model,
      async (each) => await this.#give(each, model, each.isLocal ? request : movable, signal),
      { marks, signal, isFurther: request.furtherOf !== undefined },
    );
    if (place.isLocal) return result.stream;
    return this.#moving(
      { model, request: movable, place, giving: result, marks, transcript },
      arrivedAt,
      signal,
    );
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

  /** Has a machine begin to answer. */
  async #give(
    place: Place,
    model: FoundModel,
    request: InferenceRequest,
    signal: AbortSignal,
  ): Promise<Giving> {
    if (place.isLocal) {
      const stream = await this.#options.local.generate({ ...request, mayWait: false }, signal);
      return { stream, leave: () => void stream.events.return?.() };
    }
    const call = this.#open(place, model, encodeGenerate(request), true, signal);
    try {
      const stream = await beginRemote(call, model.alias, (tokens) => request.onTokens?.(tokens));
      let isLeft = false;
      const leave = (): void => {
        call.end();
        if (!isLeft) this.#options.dispatch.ended(place);
        isLeft = true;
      };
      return { stream, leave };
    } catch (error) {
      call.end();
      throw error;
    }
  }

  #moving(
    {
      model,
      request,
      place,
      giving,
      marks,
      transcript,
    }: {
      readonly model: FoundModel;
      readonly request: InferenceRequest;
      readonly place: Place;
      readonly giving: Giving;
      readonly marks: readonly Mark[];
      readonly transcript: Transcript;
    },
    arrivedAt: number,
    signal: AbortSignal,
  ): InferenceStream {
    const { dispatch, config, logger } = this.#options;
    const held = new DisposableStack();
    const account = held.use(
      this.#accounting.begin(request.endpoint, request.furtherOf?.follower, arrivedAt),
    );
    const deadline = held.use(new Deadline(signal, config.engine.request_timeout));
    account.answeredBy(model.alias);
    let current = place;
    const again = async (): Promise<Giving> => {
      const begun = await dispatch.begin<Giving>(
        model,
        async (each) => await this.#give(each, model, { ...request, isCounted: false }, deadline.signal),
        {
          marks,
          signal: deadline.signal,
          continues: { engine: place.engine, hasTold: !transcript.isEmpty },
        },
      );
      current = begun.place;
      return begun.result;
    };
    const options = { first: giving, again, transcript, account, deadline, signal, held, logger };
    const { follower } = account;
    const elsewhere = (): AnsweringMachine => ({
      machine: current.processor,
      engineSha256: current.engine,
      gpuLayers: current.gpuLayers,
    });
    return { ...giving.stream, events: new MovingAnswer(options), follower, elsewhere };
  }

  async #short<Request extends ShortRequest, Answer>(
    op: ShortCall,
    request: Request,
    signal: AbortSignal,
    schema: z.ZodType<Answer>,
    locally: (request: Request) => Promise<Answer>,
  ): Promise<Answer> {
    const { dispatch, config } = this.#options;
    const model = await this.#find(request.model);
    if (!model) return await this.#alone(request, locally(request));
    const needsSlot = NEEDS_SLOT.has(op);
    const work = async (place: Place): Promise<{ answer: Answer }> => {
      if (place.isLocal) return { answer: await locally({ ...request, mayWait: false }) };
      using deadline = new Deadline(signal, config.engine.request_timeout);
      const call = this.#open(place, model, encodeShort(op, request), needsSlot, deadline.signal);
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

  #open(
    place: Place,
    model: FoundModel,
    body: Uint8Array,
    needsSlot: boolean,
    signal: AbortSignal,
  ): RemoteCall {
    const { files, settings, adapter } = model;
    const name = adapter === undefined ? place.name : `${place.name}:${adapter}`;
    return this.#options.calls.open(place.machine, { files, settings, name, needsSlot }, body, signal);
  }
}

function slotElsewhere(alias: string, cause: unknown): ServiceError {
  return new ServiceError(
    "unsupported_feature",
    `A request that names a slot is answered where it arrives, and "${alias}" is on other machines of the fleet: leave the slot out, or ask there.`,
    { param: "id_slot", cause },
  );
}

/** A request whose answer can be given again: with a seed, and without telling a token twice. */
function repeatable(request: InferenceRequest, transcript: Transcript): InferenceRequest {
  const { defaults, onTokens } = request;
  const sampling = { seed: Math.floor(Math.random() * SEEDS), ...defaults.sampling };
  return {
    ...request,
    defaults: { ...defaults, sampling },
    onTokens: onTokens && ((tokens) => onTokens(transcript.newTokens(tokens))),
  };
}
