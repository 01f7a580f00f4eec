import type { GenerationEvent } from "../../engine/protocol/generation.ts";
import { tryJson } from "../../json/try-json.ts";
import type { EventReader } from "../event-reader.ts";
import { randomCallId } from "../random-call-id.ts";

/** The text before the arguments; the schema fixes the order. */
const HEAD = /^\s*\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"arguments"\s*:\s*/;
/** Text that may be the end of the call, after its arguments. */
const TAIL = /\s*(?:\}\s*)?$/;

/**
 * Reads an answer in the format of {@link forcedCallSchema} as a tool call. The arguments are passed on as they come. An
 * answer that is cut off before the arguments stays text.
 */
export function readForcedCall(makeId: () => string = randomCallId): EventReader {
  const reader = new ForcedCallReader(makeId);
  return function* (event) {
    if (event.type === "text-delta") yield* reader.push(event.text);
    else if (event.type === "done") {
      yield* reader.flush();
      yield reader.called && event.reason === "stop" ? { ...event, reason: "tool_calls" } : event;
    } else yield event;
  };
}

class ForcedCallReader {
  readonly #makeId: () => string;
  #held = "";
  #arguments = "";
  called = false;

  constructor(makeId: () => string) {
    this.#makeId = makeId;
  }

  *push(text: string): Generator<GenerationEvent> {
    this.#held += text;
    if (!this.called) {
      const head = HEAD.exec(this.#held);
      // More whitespace may follow the colon: wait for the first character of the arguments.
      if (!head?.[1] || head[0].length === this.#held.length) return;
      this.called = true;
      this.#held = this.#held.slice(head[0].length);
      const name = String(JSON.parse(head[1]));
      yield { type: "tool-call-start", index: 0, id: this.#makeId(), name };
    }
    const tail = TAIL.exec(this.#held)?.[0].length ?? 0;
    yield* this.#emit(this.#held.slice(0, this.#held.length - tail));
    this.#held = this.#held.slice(this.#held.length - tail);
  }

  /** The answer has ended: the held text is the end of the call, unless the arguments were cut off. */
  *flush(): Generator<GenerationEvent> {
    if (!this.called) {
      if (this.#held !== "") yield { type: "text-delta", text: this.#held };
    } else if (tryJson(this.#arguments) === undefined) yield* this.#emit(this.#held);
    this.#held = "";
  }

  *#emit(text: string): Generator<GenerationEvent> {
    if (text === "") return;
    this.#arguments += text;
    yield { type: "tool-call-delta", index: 0, arguments: text };
  }
}
