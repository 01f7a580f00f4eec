/** NATS passes a beat on to the machine that has sent it within this time, or later than anybody cares. */
const KEPT_MS = 10_000;
/** A machine sends two in a second, and some more when something changes. */
const MOST_KEPT = 256;
/** Somebody who speaks in this machine's name all the time must not have it answer all the time. */
const ANSWER_EVERY_MS = 100;
/** The same for what it writes to its log. */
const TELL_EVERY_MS = 60_000;

/** Knows the beats that this machine has sent, and so those that others send in its name. */
export class OwnBeats {
  /** By what they say: when they were sent. */
  readonly #sent = new Map<string, number>();
  #answeredAt = Number.NEGATIVE_INFINITY;
  #toldAt = Number.NEGATIVE_INFINITY;

  sent(data: Uint8Array, now: number): void {
    const text = textOf(data);
    // The newest are at the end.
    this.#sent.delete(text);
    this.#sent.set(text, now);
    for (const [known, at] of this.#sent)
      if (at < now - KEPT_MS || this.#sent.size > MOST_KEPT) this.#sent.delete(known);
      else break;
  }

  /**
   * A beat with this machine's id has come.
   * @returns what is to be done: with `answers`, a beat is to be sent at once, with `tells`, a warning is to be written
   */
  heard(data: Uint8Array, now: number): { readonly answers: boolean; readonly tells: boolean } {
    if (this.#sent.has(textOf(data))) return { answers: false, tells: false };
    const answers = now - this.#answeredAt >= ANSWER_EVERY_MS;
    const tells = now - this.#toldAt >= TELL_EVERY_MS;
    if (answers) this.#answeredAt = now;
    if (tells) this.#toldAt = now;
    return { answers, tells };
  }
}

function textOf(data: Uint8Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("latin1");
}
