import { toReportedError } from "../engine/protocol/messages.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { FollowRequest, RequestHead } from "../http/middleware/request-log.ts";
import { MAX_JSON_ITEMS, MAX_JSON_NUMBERS } from "../json/json-reader.ts";
import type { Inference } from "../inference/inference.ts";
import { type CallRequest, type Offer, offerSchema, type Report, requestSchema } from "./call-schemas.ts";
import { decodeValue, type Frame, readCount, readFrame, writeFrame } from "./wire-format.ts";
import type { FleetConnection } from "./fleet-connection.ts";
import { startTicks } from "./speed-meter.ts";
import { ALIVE_INTERVAL_MS } from "./remote-calls.ts";
import { ReportSender, runCall } from "./run-call.ts";

/** Maximum values of a request: those of a request body, and some more. */
const MAX_VALUES = MAX_JSON_NUMBERS + 4 * MAX_JSON_ITEMS;
/** Maximum values of an offer. */
const MAX_OFFER_VALUES = 64;
/** Maximum bytes of all requests that are still arriving. */
const MAX_PENDING_BYTES = 256 * 1024 * 1024;
/** More calls than any machine has slots. */
const MAX_CALLS = 1024;
/** A caller that is silent for this time is gone, so its answer is not needed. */
const SILENCE_TIMEOUT_MS = 3000;

interface ServedCallsOptions {
  readonly connection: FleetConnection;
  readonly selfId: string;
  /** Inference of this machine only. */
  readonly inference: () => Inference;
  /** Records this machine's requests. */
  readonly followRequest: FollowRequest;
  /** Returns why this machine cannot begin a call at once; undefined if it can. */
  readonly refusal: (offer: Offer) => ServiceError | undefined;
}

/** Calls that this machine runs for others. */
export class ServedCalls {
  readonly #options: ServedCallsOptions;
  readonly #calls = new Map<string, ServedCall>();
  readonly #timer: NodeJS.Timeout;
  #pendingBytes = 0;

  constructor(options: ServedCallsOptions) {
    this.#options = options;
    const { connection, selfId } = options;
    connection.listen(connection.subject("call", selfId), (data) => {
      const frame = readFrame(data);
      if (frame?.kind === "offer") this.#open(frame);
      else if (frame) this.#calls.get(frame.call)?.read(frame);
    });
    connection.onChange(() => {
      if (connection.isConnected) return;
      for (const call of this.#calls.values()) call.end("the NATS server is gone");
    });
    this.#timer = startTicks(ALIVE_INTERVAL_MS, (wasStalled) => this.#tick(wasStalled));
  }

  /** Number of running calls. */
  get count(): number {
    return this.#calls.size;
  }

  /** Ends all calls, which their callers then move to other machines. */
  close(): void {
    clearInterval(this.#timer);
    for (const call of this.#calls.values()) call.leave();
  }

  #tick(wasStalled: boolean): void {
    const before = performance.now() - SILENCE_TIMEOUT_MS;
    for (const call of this.#calls.values()) {
      if (!wasStalled && call.lastFrameAt < before) call.end("the machine that asks is silent");
      else call.sender.keepAlive();
    }
  }

  #open(frame: Frame): void {
    const opened = readOffer(frame.payload);
    if (!opened || this.#calls.has(frame.call)) return;
    const { offer, body } = opened;
    const { connection, inference, followRequest } = this.#options;
    const subject = connection.subject("answer", offer.entrance);
    const send = (frameContent: Omit<Frame, "call">): void =>
      void connection.publish(subject, writeFrame({ ...frameContent, call: frame.call }));
    const sender = new ReportSender(send, connection.maxPayload);
    const refusal =
      this.#calls.size >= MAX_CALLS || this.#pendingBytes + offer.bytes > MAX_PENDING_BYTES
        ? new ServiceError("overloaded", "The machine has too many calls.")
        : this.#options.refusal(offer);
    if (refusal) return sender.report({ type: "declined", error: toReportedError(refusal) });
    // The rest of the request is sent after the acceptance.
    if (body.length < offer.bytes) send({ kind: "accepted", number: 0, payload: new Uint8Array() });
    else sender.accept();
    this.#pendingBytes += offer.bytes;
    const call = new ServedCall(offer, {
      sender,
      onComplete: () => {
        this.#pendingBytes -= offer.bytes;
      },
      onEnd: () => this.#calls.delete(frame.call),
      run: async (request, signal) => {
        const head = { id: frame.call, method: "FLEET", path: `/${request.op}` };
        await trackRequest(followRequest, head, signal, async () => {
          await runCall(inference(), offer.name, request, sender, signal);
        });
      },
    });
    this.#calls.set(frame.call, call);
    call.addPart(body);
    return undefined;
  }
}

interface ServedCallOptions {
  readonly sender: ReportSender;
  /** Called once, when the request is complete or the call has ended. */
  readonly onComplete: () => void;
  readonly onEnd: () => void;
  readonly run: (request: CallRequest, signal: AbortSignal) => Promise<void>;
}

/** Call of another machine. */
class ServedCall {
  readonly #offer: Offer;
  readonly #options: ServedCallOptions;
  readonly #controller = new AbortController();
  #parts: Uint8Array[] = [];
  #bytes = 0;
  #nextBody = 1;
  #isComplete = false;
  #isOver = false;
  lastFrameAt = performance.now();

  constructor(offer: Offer, options: ServedCallOptions) {
    this.#offer = offer;
    this.#options = options;
  }

  get sender(): ReportSender {
    return this.#options.sender;
  }

  read({ kind, number, payload }: Frame): void {
    this.lastFrameAt = performance.now();
    if (kind === "alive") this.sender.acknowledge(readCount(payload));
    else if (kind === "cancel") this.end("cancelled");
    else if (kind === "body" && number === this.#nextBody) {
      this.#nextBody += 1;
      this.addPart(payload);
    } else if (kind === "body") this.#decline("A part of the request is missing.");
  }

  addPart(part: Uint8Array): void {
    if (this.#isComplete || this.#isOver) return;
    // The NATS client may reuse its buffer.
    this.#parts.push(new Uint8Array(part));
    this.#bytes += part.length;
    if (this.#bytes > this.#offer.bytes) return this.#decline("The request is longer than it says.");
    if (this.#bytes < this.#offer.bytes) return undefined;
    this.#completed();
    const request = readRequest(Buffer.concat(this.#parts));
    this.#parts = [];
    if (!request) return this.#decline("The request is not valid.");
    void this.#run(request);
    return undefined;
  }

  /** Ends the call because its answer is not needed any more. */
  end(why: string): void {
    if (this.#isOver) return;
    this.#finish();
    this.#controller.abort(new Error(why));
  }

  /** Ends the call because this machine leaves. */
  leave(): void {
    if (!this.#isOver)
      this.sender.report({
        type: "failed",
        error: { code: "shutting_down", message: "The machine leaves." },
      });
    this.end("this machine leaves");
  }

  async #run(request: CallRequest): Promise<void> {
    try {
      await this.#options.run(request, this.#controller.signal);
    } catch (error) {
      const isBusy = error instanceof ServiceError && error.code === "overloaded";
      const report: Report = { type: isBusy ? "declined" : "failed", error: toReportedError(error) };
      if (!this.#isOver) this.sender.report(report);
    }
    this.#finish();
  }

  #decline(message: string): void {
    this.sender.report({ type: "declined", error: { code: "invalid_parameter", message } });
    this.end(message);
  }

  #completed(): void {
    if (!this.#isComplete) this.#options.onComplete();
    this.#isComplete = true;
  }

  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#completed();
    this.#options.onEnd();
  }
}

/** Runs an action as a tracked request. @throws what the action throws */
async function trackRequest(
  follow: FollowRequest,
  head: RequestHead,
  signal: AbortSignal,
  work: () => Promise<void>,
): Promise<void> {
  const startedAt = performance.now();
  let failure: unknown;
  const end = await follow(head, async () => {
    await work().catch((error: unknown) => {
      failure = error;
    });
  });
  const status = failure === undefined ? 200 : ServiceError.from(failure).status;
  const ms = Math.round(performance.now() - startedAt);
  end({ status, ms, route: head.path, isAborted: signal.aborted });
  if (failure !== undefined) throw failure;
}

/** Decodes an offer and the part of its request that came with it. */
function readOffer(payload: Uint8Array): { offer: Offer; body: Uint8Array } | undefined {
  try {
    const length = new DataView(payload.buffer, payload.byteOffset).getUint32(0);
    const offer = offerSchema.safeParse(decodeValue(payload.subarray(4, 4 + length), MAX_OFFER_VALUES)).data;
    return offer && { offer, body: payload.subarray(4 + length) };
  } catch {
    return undefined;
  }
}

function readRequest(bytes: Uint8Array): CallRequest | undefined {
  try {
    return requestSchema.safeParse(decodeValue(bytes, MAX_VALUES)).data;
  } catch {
    return undefined;
  }
}
