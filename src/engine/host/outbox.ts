import type { GenerationEvent } from "../protocol/generation.ts";
import type { EngineMessage } from "../protocol/messages.ts";

/** Hands one message to the channel and calls back when it has been written. */
type Send = (message: EngineMessage, written: () => void) => void;

/**
 * How long the news of a prompt waits for the token that comes of the same step: that is there in one or two
 * milliseconds, and a message of its own would take the processors from it for as long.
 */
const PROMPT_NEWS_MS = 5;

const PROMPT_NEWS: ReadonlySet<GenerationEvent["type"]> = new Set(["start", "prompt-progress"]);

/**
 * Sends events to the daemon: each at once while the channel is free, several in one message while it is not.
 * So the first token waits for nothing, and a fast model does not pay for a message per token.
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
    else if (!mergeText(events.at(-1), event)) events.push(event);
    if (PROMPT_NEWS.has(event.type)) this.#timer ??= setTimeout(() => this.#flush(), PROMPT_NEWS_MS);
    else this.#flush();
  }

  /** Sends what is not an event; the call's own events go first. */
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

/** Joins neighboring pieces of text; true when `event` has been added to `last`. */
function mergeText(last: GenerationEvent | undefined, event: GenerationEvent): boolean {
  if (last?.type === "text-delta" && event.type === "text-delta") {
    last.text += event.text;
    if (event.logprobs) last.logprobs = [...(last.logprobs ?? []), ...event.logprobs];
    return true;
  }
  if (last?.type === "reasoning-delta" && event.type === "reasoning-delta") {
    last.text += event.text;
    return true;
  }
  return false;
}
