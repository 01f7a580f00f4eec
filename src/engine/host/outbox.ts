import { isTextDelta, joinDeltas, deltaText } from "../protocol/text-delta.ts";
import type { GenerationEvent } from "../protocol/generation.ts";
import type { EngineMessage } from "../protocol/messages.ts";

/** Writes a message to the channel and calls back when it has been written. */
type Send = (message: EngineMessage, written: () => void) => void;

/** Delay of events without text. If text follows soon, one message carries both; two messages would delay the text. */
const TEXTLESS_DELAY_MS = 5;

/** Event types that are delayed. "start" is not: the daemon prepares its answer while llama.cpp computes the text. */
const TEXTLESS_EVENTS: ReadonlySet<GenerationEvent["type"]> = new Set(["prompt-progress", "tokens"]);

/**
 * Sends events to the daemon: immediately while the channel is free, otherwise several in one message. So the first
 * token is not delayed, and a fast model does not need a message per token.
 */
export class Outbox {
  readonly #send: Send;
  readonly #pending = new Map<number, GenerationEvent[]>();
  #isWriting = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(send: Send) {
    this.#send = send;
  }

  pushEvent(call: number, event: GenerationEvent): void {
    const events = this.#pending.get(call);
    if (!events) this.#pending.set(call, [event]);
    else if (!joinText(events.at(-1), event) && !joinTokens(events, event)) events.push(event);
    if (TEXTLESS_EVENTS.has(event.type)) this.#timer ??= setTimeout(() => this.#flush(), TEXTLESS_DELAY_MS);
    else this.#flush();
  }

  /** Sends another message, after the pending events of its call. */
  push(message: EngineMessage): void {
    if ("call" in message) this.#write(message.call);
    this.#send(message, () => {});
  }

  #flush(): void {
    if (this.#isWriting) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const call of this.#pending.keys()) this.#write(call);
  }

  #write(call: number): void {
    const events = this.#pending.get(call);
    if (!events) return;
    this.#pending.delete(call);
    this.#isWriting = true;
    this.#send({ type: "events", call, events }, () => {
      this.#isWriting = false;
      this.#flush();
    });
  }
}

/** Joins text and records where each token ends, so that token counts do not depend on the speed of the channel. */
function joinText(last: GenerationEvent | undefined, event: GenerationEvent): boolean {
  if (!last || !isTextDelta(last)) return false;
  const end = deltaText(last).length;
  if (!joinDeltas(last, event)) return false;
  last.ends ??= [end];
  last.ends.push(deltaText(last).length);
  return true;
}

/**
 * Appends tokens to an earlier event with tokens, so that the texts around them can be joined. Returns false if there
 * is no such event.
 */
function joinTokens(events: readonly GenerationEvent[], event: GenerationEvent): boolean {
  if (event.type !== "tokens") return false;
  const earlier = events.find((each) => each.type === "tokens");
  if (!earlier) return false;
  for (const id of event.ids) earlier.ids.push(id);
  earlier.replaced += event.replaced;
  return true;
}
