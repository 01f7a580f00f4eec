import { toServiceError } from "../engine/protocol/messages.ts";
import { EventQueue } from "../async/event-queue.ts";
import { PROTOCOL } from "./members.ts";
import type { Offer, Report } from "./call-schemas.ts";
import { reportSchema } from "./call-schemas.ts";
import {
  decodeValue,
  encodeValue,
  type Frame,
  inParts,
  newCallId,
  readFrame,
  writeCount,
  writeFrame,
} from "./wire-format.ts";
import type { FleetConnection } from "./fleet-connection.ts";
import { OwnPauses } from "./speed-meter.ts";

/** Bytes of an answer that may be on their way or wait for the reader: a second's worth of the fastest model. */
export const WINDOW_BYTES = 256 * 1024;
/** What has been read is told after so many bytes, and with each sign of life. */
const TELL_BYTES = WINDOW_BYTES / 4;
/** Bytes that one report may have: the vectors of thousands of texts. */
const MAX_REPORT_BYTES = 256 * 1024 * 1024;
const MAX_REPORT_VALUES = MAX_REPORT_BYTES / 16;
/** Signs of life, in both directions. */
export const ALIVE_MS = 500;
/** A machine that is silent for this long is gone. */
const SILENCE_MS = 2000;
/** One that is there answers an offer at once. */
const ACCEPT_MS = 1000;

/** The machine that worked on a call is gone, or the way to it. */
export class MachineLost extends Error {
  override readonly name = "MachineLost";
}

/** The calls that this machine has asked others to work on. */
export class RemoteCalls {
  readonly #connection: FleetConnection;
  readonly #selfId: string;
  readonly #calls = new Map<string, RemoteCall>();
  readonly #timer: NodeJS.Timeout;
  readonly #pauses: OwnPauses;
  readonly #now: () => number;

  /** @param now milliseconds since any origin */
  constructor(connection: FleetConnection, selfId: string, now: () => number = () => performance.now()) {
    this.#connection = connection;
    this.#selfId = selfId;
    this.#now = now;
    this.#pauses = new OwnPauses(ALIVE_MS, now());
    connection.listen(connection.subject("answer", selfId), (data) => {
      const frame = readFrame(data);
      if (frame) this.#calls.get(frame.call)?.read(frame);
    });
    connection.onChange(() => {
      if (!connection.isConnected) this.#loseAll();
    });
    this.#timer = setInterval(() => this.#tick(), ALIVE_MS);
    this.#timer.unref();
  }

  /** Asks a machine, until the signal aborts. @param body the encoded request */
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
      now: this.#now,
    });
    this.#calls.set(call, remote);
    remote.offer({ ...offer, protocol: PROTOCOL, entrance: this.#selfId, bytes: body.length }, body);
    return remote;
  }

  get count(): number {
    return this.#calls.size;
  }

  close(): void {
    clearInterval(this.#timer);
    for (const call of this.#calls.values()) call.end();
  }

  #tick(): void {
    const counts = !this.#pauses.isAfterPause(this.#now());
    for (const call of this.#calls.values()) call.tick(counts);
  }

  #loseAll(): void {
    for (const call of this.#calls.values()) call.lose("the NATS server is gone");
  }
}

interface RemoteCallOptions {
  readonly send: (frame: Omit<Frame, "call">) => boolean;
  readonly maxPayload: number;
  readonly signal: AbortSignal;
  readonly onEnd: () => void;
  readonly now: () => number;
}

/** A call on another machine, seen from the one that asks. */
export class RemoteCall {
  readonly #options: RemoteCallOptions;
  readonly #reports = new EventQueue<{ report: Report; bytes: number }>(2 * WINDOW_BYTES, ({ bytes }) =>
    // A report that is larger than the window is alone on its way.
    Math.min(bytes, WINDOW_BYTES),
  );
  readonly #openedAt: number;
  #body: Uint8Array | undefined;
  #isAccepted = false;
  #isOver = false;
  #heardAt: number;
  /** Number of the next frame that may not be lost. */
  #next = 0;
  #parts: Uint8Array[] = [];
  #partBytes = 0;
  #readBytes = 0;
  #toldBytes = 0;
  readonly #onAbort = () => this.end();

  constructor(options: RemoteCallOptions) {
    this.#options = options;
    options.signal.addEventListener("abort", this.#onAbort, { once: true });
    this.#openedAt = options.now();
    this.#heardAt = this.#openedAt;
  }

  /** Sends the offer, with the request if it fits. */
  offer(offer: Offer, body: Uint8Array): void {
    const head = encodeValue(offer);
    const fits = head.length + body.length + 64 < Math.min(this.#options.maxPayload, WINDOW_BYTES);
    const payload = new Uint8Array(4 + head.length + (fits ? body.length : 0));
    new DataView(payload.buffer).setUint32(0, head.length);
    payload.set(head, 4);
    if (fits) payload.set(body, 4 + head.length);
    else this.#body = body;
    if (!this.#options.send({ kind: "offer", number: 0, payload })) this.lose("there is no connection");
  }

  /**
   * The next report.
   * @throws MachineLost, the signal's reason, and the ServiceError with which the machine refuses or fails
   */
  async next(): Promise<Report> {
    const { value } = await this.#reports.next();
    this.#options.signal.throwIfAborted();
    if (!value) throw new MachineLost("it sends nothing more");
    this.#readBytes += value.bytes;
    if (this.#readBytes - this.#toldBytes >= TELL_BYTES) this.#tell();
    const { report } = value;
    if (report.type === "failed" || report.type === "declined") throw toServiceError(report.error);
    return report;
  }

  /** Ends the call; the machine stops working on it. */
  end(): void {
    if (this.#isOver) return;
    this.#options.send({ kind: "cancel", number: 0, payload: new Uint8Array() });
    this.#finish();
    this.#reports.clear();
  }

  lose(why: string): void {
    if (this.#isOver) return;
    this.#options.send({ kind: "cancel", number: 0, payload: new Uint8Array() });
    this.#finish();
    this.#reports.end(new MachineLost(why));
  }

  /** @param silenceCounts false: this process was held up itself */
  tick(silenceCounts: boolean): void {
    const now = this.#options.now();
    if (!silenceCounts) this.#tell();
    else if (!this.#isAccepted && now - this.#openedAt > ACCEPT_MS) this.lose("it does not answer");
    else if (now - this.#heardAt > SILENCE_MS) this.lose("it is silent");
    else this.#tell();
  }

  read({ kind, number, payload }: Frame): void {
    this.#heardAt = this.#options.now();
    this.#isAccepted = true;
    if (kind === "accepted") this.#sendBody();
    else if (kind === "alive" && number !== this.#next) this.lose("a part of its answer is missing");
    else if (kind === "part" || kind === "last") this.#take(kind, number, payload);
  }

  #take(kind: "part" | "last", number: number, payload: Uint8Array): void {
    if (number !== this.#next) return this.lose("a part of its answer is missing");
    this.#next += 1;
    this.#partBytes += payload.length;
    if (this.#partBytes > MAX_REPORT_BYTES) return this.lose("its answer is too long");
    this.#parts.push(payload);
    if (kind === "part") return undefined;
    const bytes = this.#partBytes;
    const report = readReport(this.#parts.length === 1 ? payload : Buffer.concat(this.#parts));
    this.#parts = [];
    this.#partBytes = 0;
    if (!report) return this.lose("its answer is not valid");
    if (!this.#reports.push({ report, bytes })) return this.lose("it sends more than it may");
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
    let number = 1;
    for (const payload of inParts(body, this.#options.maxPayload)) {
      this.#options.send({ kind: "body", number, payload });
      number += 1;
    }
  }

  /** Tells the machine that somebody is there, and how much has been read. */
  #tell(): void {
    this.#toldBytes = this.#readBytes;
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
