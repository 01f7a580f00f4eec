import type { InferenceEvent } from "../inference/inference.ts";
import type { TokenLogprob } from "../engine/protocol/generation.ts";
import type { Report } from "./call-schemas.ts";
import { encodeValue } from "./encode-value.ts";
import { type Frame, inParts } from "./frame.ts";
import { WINDOW_BYTES } from "./remote-calls.ts";

/** Sends the reports of a call, no faster than they are read. */
export class ReportSender {
  readonly #send: (frame: Omit<Frame, "call">) => void;
  readonly #maxPayload: number;
  #number = 0;
  #sentBytes = 0;
  #readBytes = 0;
  #hasSent = false;
  #events: InferenceEvent[] = [];
  #tokens: TokenLogprob[] = [];
  #isScheduled = false;
  #wake: (() => void) | undefined;

  constructor(send: (frame: Omit<Frame, "call">) => void, maxPayload: number) {
    this.#send = send;
    this.#maxPayload = maxPayload;
  }

  /** Resolves when there is room for more. */
  async room(signal: AbortSignal): Promise<void> {
    while (this.#sentBytes - this.#readBytes >= WINDOW_BYTES) {
      signal.throwIfAborted();
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    }
  }

  /** So many bytes have been read on the other side. */
  read(bytes: number): void {
    if (bytes <= this.#readBytes) return;
    this.#readBytes = bytes;
    this.#wake?.();
  }

  /** Sends an event, together with those that come in the same turn of the event loop. */
  event(event: InferenceEvent): void {
    this.#events.push(event);
    this.#schedule();
  }

  token(tokens: readonly TokenLogprob[]): void {
    this.#tokens.push(...tokens);
    this.#schedule();
  }

  /** Sends a report now, after the events before it. */
  report(report: Report): void {
    this.#flush();
    this.#write(report);
  }

  /** Tells that this machine still works on the call, unless it has just sent something. */
  alive(): void {
    if (!this.#hasSent) this.#send({ kind: "alive", number: this.#number, payload: new Uint8Array() });
    this.#hasSent = false;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#flush());
  }

  #flush(): void {
    this.#isScheduled = false;
    if (this.#events.length === 0 && this.#tokens.length === 0) return;
    const tokens = this.#tokens;
    this.#write({ type: "events", events: this.#events, ...(tokens.length > 0 && { tokens }) });
    this.#events = [];
    this.#tokens = [];
  }

  #write(report: Report): void {
    const parts = [...inParts(encodeValue(report), this.#maxPayload)];
    for (const [at, payload] of parts.entries()) {
      this.#send({ kind: at === parts.length - 1 ? "last" : "part", number: this.#number, payload });
      this.#number += 1;
      this.#sentBytes += payload.length;
    }
    this.#hasSent = true;
  }
}
