import { isTextDelta, joinDeltas, deltaText } from "../protocol/piece.ts";
import type { GenerationEvent } from "../protocol/generation.ts";
import type { EngineMessage } from "../protocol/messages.ts";

/** Writes a message to the channel and calls back when it has been written. */
type Send = (message: EngineMessage, written: () => void) => void;

/** How long what nobody reads waits for the text that follows: an extra message would delay that text. */
const TEXTLESS_DELAY_MS = 5;

/** Not "start": the daemon prepares its answer while the text is fetched from llama.cpp. */
const TEXTLESS: ReadonlySet<GenerationEvent["type"]> = new Set(["prompt-progress", "tokens"]);

/**
 * Sends events to the daemon: right away while the channel is free, otherwise several in one message. So the first
 * token does not wait, and a fast model does not need a message per token.
 */
export class Outbox {
  readonly #send: Send;
  readonly #waiting = new Map<number, GenerationEvent[]>();
  #isWriting = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(send: Send) {
    this.#send = send;
  }

  pushEvent(call: number, event: GenerationEvent): void {
    const events = this.#waiting.get(call);
    if (!events) this.#waiting.set(call, [event]);
    else if (!joinText(events.at(-1), event) && !joinTokens(events, event)) events.push(event);
    if (TEXTLESS.has(event.type)) this.#timer ??= setTimeout(() => this.#flush(), TEXTLESS_DELAY_MS);
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
    for (const call of this.#waiting.keys()) this.#write(call);
  }

  #write(call: number): void {
    const events = this.#waiting.get(call);
    if (!events) return;
    this.#waiting.delete(call);
    this.#isWriting = true;
    this.#send({ type: "events", call, events }, () => {
      this.#isWriting = false;
      this.#flush();
    });
  }
}

/** Joins text, and keeps where each token's ends: whoever counts them must not depend on how fast the channel is. */
function joinText(last: GenerationEvent | undefined, event: GenerationEvent): boolean {
  if (!last || !isTextDelta(last)) return false;
  const end = deltaText(last).length;
  if (!joinDeltas(last, event)) return false;
  last.ends ??= [end];
  last.ends.push(deltaText(last).length);
  return true;
}

/** Tells tokens with those before them, so that the text between them becomes one; returns false when there are none. */
function joinTokens(events: readonly GenerationEvent[], event: GenerationEvent): boolean {
  if (event.type !== "tokens") return false;
  const told = events.find((each) => each.type === "tokens");
  if (!told) return false;
  for (const id of event.ids) told.ids.push(id);
  told.replaced += event.replaced;
  return true;
}
