import { abortable } from "../async/abortable.ts";
import type { ChosenTokens, InferenceEvent } from "../inference/inference.ts";
import type { TokenLogprob } from "../engine/protocol/generation.ts";
import { joinPieces } from "../engine/protocol/join-pieces.ts";
import type { Report } from "./call-schemas.ts";
import { encodeValue } from "./encode-value.ts";
import { type Frame, inParts } from "./frame.ts";
import { WINDOW_BYTES } from "./remote-calls.ts";
import { atTurnEnd } from "./turn-end.ts";

/**
 * Between two messages with text: a faster model's tokens go together, since a message costs several processes as much time
 * as such a model needs for a token. Slower ones, all that people wait for, never wait for this.
 */
const GAP_MS = 10;
/** Events of one message: what has waited for room must not become one that is larger than the room. */
const MOST_EVENTS = 64;
/** An acceptance that is told by nothing else is told after this time. */
const ACCEPT_MS = 50;

/** Sends the reports of a call, no faster than they are read. */
export class ReportSender {
  readonly #send: (frame: Omit<Frame, "call">) => void;
  readonly #maxPayload: number;
  #number = 0;
  #sentBytes = 0;
  #readBytes = 0;
  #hasSent = false;
  #begun: Report | undefined;
  #hasText = false;
  #textAt = Number.NEGATIVE_INFINITY;
  #events: InferenceEvent[] = [];
  /** How many have become these. */
  #gathered = 0;
  #tokens: TokenLogprob[] = [];
  #chosen: { ids: number[]; replaced: number; failedTries: number | undefined } | undefined;
  #isScheduled = false;
  #wake: (() => void) | undefined;

  constructor(send: (frame: Omit<Frame, "call">) => void, maxPayload: number) {
    this.#send = send;
    this.#maxPayload = maxPayload;
  }

  /** Resolves when there is room for more. */
  async room(signal: AbortSignal): Promise<void> {
    while (this.#sentBytes - this.#readBytes >= WINDOW_BYTES) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await abortable(promise, signal);
    }
  }

  /** So many bytes have been read on the other side. */
  read(bytes: number): void {
    if (bytes <= this.#readBytes) return;
    this.#readBytes = bytes;
    this.#wake?.();
  }

  /** Tells that this machine works on the call, unless what it tells by itself comes first. */
  accept(): void {
    setTimeout(() => {
      if (this.#number === 0) this.#send({ kind: "accepted", number: 0, payload: new Uint8Array() });
    }, ACCEPT_MS).unref();
  }

  /** Sends that the answer begins, together with its first events. */
  begin(begun: Extract<Report, { type: "begun" }>): void {
    this.#begun = begun;
    this.#schedule();
  }

  /** Sends an event, together with those that come in the same turn of the event loop, or soon after one with text, as one piece. */
  event(event: InferenceEvent): void {
    if (!joinPieces(this.#events.at(-1), event)) this.#events.push(event);
    this.#gathered += 1;
    this.#hasText ||= event.type === "text-delta" || event.type === "reasoning-delta";
    if (this.#gathered >= MOST_EVENTS) this.#flush();
    else if (event.type === "done") atTurnEnd(() => this.#flush());
    else this.#schedule();
  }

  /** Tokens go with the next event: the engine tells them also while the reader has no room. */
  token(tokens: readonly TokenLogprob[]): void {
    for (const token of tokens) this.#tokens.push(token);
  }

  /** As {@link token}. Those of an answer that did not fit are of no use when the next one has begun. */
  chosen({ ids, replaced, failedTries }: ChosenTokens): void {
    if (this.#chosen?.failedTries !== failedTries) this.#chosen = undefined;
    this.#chosen ??= { ids: [], replaced: 0, failedTries };
    for (const id of ids) this.#chosen.ids.push(id);
    this.#chosen.replaced += replaced;
  }

  /** Sends a report now, after the events before it. */
  report(report: Report): void {
    this.#flush();
    this.#write(report);
  }

  /**
   * Tells that this machine still works on the call, unless it has just sent something. The tokens of an answer that is held back
   * until it fits, and has no events until then, are told with it.
   */
  alive(): void {
    const hasRoom = this.#sentBytes - this.#readBytes < WINDOW_BYTES;
    if (!this.#hasSent && this.#chosen && hasRoom) this.#flush();
    if (!this.#hasSent) this.#send({ kind: "alive", number: this.#number, payload: new Uint8Array() });
    this.#hasSent = false;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    const flush = (): void => atTurnEnd(() => this.#flush());
    const wait = this.#textAt + GAP_MS - performance.now();
    if (wait > 0) setTimeout(flush, wait);
    else flush();
  }

  #flush(): void {
    this.#isScheduled = false;
    if (this.#begun) this.#write(this.#begun);
    this.#begun = undefined;
    const [events, tokens, chosen] = [this.#events, this.#tokens, this.#chosen];
    if (events.length === 0 && tokens.length === 0 && !chosen) return;
    this.#write({ type: "events", events, ...(tokens.length > 0 && { tokens }), ...(chosen && { chosen }) });
    if (this.#hasText) this.#textAt = performance.now();
    this.#hasText = false;
    this.#events = [];
    this.#gathered = 0;
    this.#tokens = [];
    this.#chosen = undefined;
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
