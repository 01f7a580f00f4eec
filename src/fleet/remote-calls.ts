import { toServiceError } from "../engine/protocol/messages.ts";
import { EventQueue } from "../async/event-queue.ts";
import { PROTOCOL } from "./members.ts";
import type { Offer, Report } from "./call-schemas.ts";
import { reportSchema } from "./call-schemas.ts";
import {
  decodeValue,
  encodeValue,
  type Frame,
  splitIntoFrames,
  withLength,
  newCallId,
  readFrame,
  writeCount,
  writeFrame,
} from "./wire-format.ts";
import type { FleetConnection } from "./fleet-connection.ts";
import { startTicks } from "./speed-meter.ts";

/** Maximum bytes of an answer in flight or buffered, about a second of the fastest model. */
export const WINDOW_BYTES = 256 * 1024;
/** Read bytes are acknowledged after this many, and with each sign of life. */
const ACKNOWLEDGE_BYTES = WINDOW_BYTES / 4;
/** Maximum bytes of a report, enough for the embeddings of thousands of texts. */
const MAX_REPORT_BYTES = 256 * 1024 * 1024;
const MAX_REPORT_VALUES = MAX_REPORT_BYTES / 16;
/** Interval of signs of life in both directions. */
export const ALIVE_INTERVAL_MS = 500;
/** A machine that is silent for this time is lost. */
const SILENCE_TIMEOUT_MS = 2000;
/** Timeout of an offer, which a machine answers at once. */
const ACCEPT_TIMEOUT_MS = 1000;

/** Thrown if the machine of a call, or the connection to it, is lost. */
export class MachineLost extends Error {
  override readonly name = "MachineLost";
}

/** Calls that other machines run for this one. */
export class RemoteCalls {
  readonly #connection: FleetConnection;
  readonly #selfId: string;
  readonly #calls = new Map<string, RemoteCall>();
  readonly #timer: NodeJS.Timeout;

  constructor(connection: FleetConnection, selfId: string) {
    this.#connection = connection;
    this.#selfId = selfId;
    connection.listen(connection.subject("answer", selfId), (data) => {
      const frame = readFrame(data);
      if (frame) this.#calls.get(frame.call)?.read(frame);
    });
    connection.onChange(() => {
      if (connection.isConnected) return;
      for (const call of this.#calls.values()) call.markLost("the NATS server is gone");
    });
    this.#timer = startTicks(ALIVE_INTERVAL_MS, (wasStalled) => {
      for (const call of this.#calls.values()) call.tick(wasStalled);
    });
  }

  /** Offers a call to a machine; it ends when the signal aborts. @param body the encoded request */
  open(
    machine: string,
    offer: Omit<Offer, "protocol" | "entrance" | "bytes">,
    body: Uint8Array,
    signal: AbortSignal,
  ): RemoteCall {
    const call = newCallId();
    const subject = this.#connection.subject("call", machine);
    const remote = new RemoteCall({
      send: (frame) => this.#connection.publish(subject, writeFrame({ ...frame, call })),
      maxPayload: this.#connection.maxPayload,
      signal,
      onEnd: () => this.#calls.delete(call),
    });
    this.#calls.set(call, remote);
    remote.offer({ ...offer, protocol: PROTOCOL, entrance: this.#selfId, bytes: body.length }, body);
    return remote;
  }

  close(): void {
    clearInterval(this.#timer);
    for (const call of this.#calls.values()) call.end();
  }
}

interface RemoteCallOptions {
  readonly send: (frame: Omit<Frame, "call">) => boolean;
  readonly maxPayload: number;
  readonly signal: AbortSignal;
  readonly onEnd: () => void;
}

/** Call on another machine, as its caller sees it. */
export class RemoteCall {
  readonly #options: RemoteCallOptions;
  readonly #reports = new EventQueue<{ report: Report; bytes: number }>(2 * WINDOW_BYTES, ({ bytes }) =>
    // A report larger than the window is sent alone.
    Math.min(bytes, WINDOW_BYTES),
  );
  readonly #openedAt = performance.now();
  #body: Uint8Array | undefined;
  #isAccepted = false;
  #isOver = false;
  #lastFrameAt = performance.now();
  /** Number of the next numbered frame. */
  #next = 0;
  #parts: Uint8Array[] = [];
  #partBytes = 0;
  #readBytes = 0;
  #acknowledgedBytes = 0;
  readonly #onAbort = () => this.end();

  constructor(options: RemoteCallOptions) {
    this.#options = options;
    options.signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** Sends the offer, with the request if it fits. */
  offer(offer: Offer, body: Uint8Array): void {
    const head = encodeValue(offer);
    const fits = head.length + body.length + 64 < Math.min(this.#options.maxPayload, WINDOW_BYTES);
    const payload = fits ? withLength(head, body) : withLength(head);
    if (!fits) this.#body = body;
    if (!this.#options.send({ kind: "offer", number: 0, payload })) this.markLost("there is no connection");
  }

  /**
   * Returns the next report.
   * @throws MachineLost, the signal's reason, and the ServiceError with which the machine declines or fails
   */
  async next(): Promise<Report> {
    const { value } = await this.#reports.next();
    this.#options.signal.throwIfAborted();
    if (!value) throw new MachineLost("it sends nothing more");
    this.#readBytes += value.bytes;
    if (this.#readBytes - this.#acknowledgedBytes >= ACKNOWLEDGE_BYTES) this.#acknowledge();
    const { report } = value;
    if (report.type === "failed" || report.type === "declined") throw toServiceError(report.error);
    return report;
  }

  /** Ends the call and cancels it on the machine. */
  end(): void {
    this.#cancel(() => this.#reports.clear());
  }

  markLost(why: string): void {
    this.#cancel(() => this.#reports.end(new MachineLost(why)));
  }

  #cancel(endReports: () => void): void {
    if (this.#isOver) return;
    this.#options.send({ kind: "cancel", number: 0, payload: new Uint8Array() });
    this.#finish();
    endReports();
  }

  /** @param wasStalled true if this process was stalled, so that the machine's silence means nothing */
  tick(wasStalled: boolean): void {
    const now = performance.now();
    if (wasStalled) this.#acknowledge();
    else if (!this.#isAccepted && now - this.#openedAt > ACCEPT_TIMEOUT_MS)
      this.markLost("it does not answer");
    else if (now - this.#lastFrameAt > SILENCE_TIMEOUT_MS) this.markLost("it is silent");
    else this.#acknowledge();
  }

  read({ kind, number, payload }: Frame): void {
    this.#lastFrameAt = performance.now();
    this.#isAccepted = true;
    if (kind === "accepted") this.#sendBody();
    else if (kind === "alive" && number !== this.#next) this.markLost("a part of its answer is missing");
    else if (kind === "part" || kind === "last") this.#addPart(kind, number, payload);
  }

  #addPart(kind: "part" | "last", number: number, payload: Uint8Array): void {
    if (number !== this.#next) return this.markLost("a part of its answer is missing");
    this.#next += 1;
    this.#partBytes += payload.length;
    if (this.#partBytes > MAX_REPORT_BYTES) return this.markLost("its answer is too long");
    this.#parts.push(payload);
    if (kind === "part") return undefined;
    const bytes = this.#partBytes;
    const report = readReport(this.#parts.length === 1 ? payload : Buffer.concat(this.#parts));
    this.#parts = [];
    this.#partBytes = 0;
    if (!report) return this.markLost("its answer is not valid");
    if (!this.#reports.push({ report, bytes })) return this.markLost("it sends more than it may");
    if (isLast(report)) {
      this.#finish();
      this.#reports.end();
    }
    return undefined;
  }

  #sendBody(): void {
    const body = this.#body;
    this.#body = undefined;
    if (!body) return;
    for (const [at, payload] of splitIntoFrames(body, this.#options.maxPayload).entries())
      this.#options.send({ kind: "body", number: at + 1, payload });
  }

  /** Sends a sign of life with the number of bytes read. */
  #acknowledge(): void {
    this.#acknowledgedBytes = this.#readBytes;
    this.#options.send({ kind: "alive", number: 0, payload: writeCount(this.#readBytes) });
  }

  #finish(): void {
    this.#isOver = true;
    this.#options.signal.removeEventListener("abort", this.#onAbort);
    this.#options.onEnd();
  }
}

function isLast(report: Report): boolean {
  if (report.type !== "events") return report.type !== "begun";
  return report.events.at(-1)?.type === "done";
}

function readReport(bytes: Uint8Array): Report | undefined {
  try {
    return reportSchema.safeParse(decodeValue(bytes, MAX_REPORT_VALUES)).data;
  } catch {
    return undefined;
  }
}
