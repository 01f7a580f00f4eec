import type { GenerationEvent, TokenLogprob } from "../../engine/protocol/generation.ts";
import type { ToolFormat } from "../../models/model.ts";
import { type EventReader, partialTagLength } from "../stream-filters.ts";
import { randomCallId } from "./tool-call-ids.ts";

interface SplitToolCallsOptions {
  /** False: only one call per turn; its end tag is a stop sequence of the request. */
  parallel: boolean;
  /** Creates the id of a call. */
  makeId?: () => string;
}

/**
 * Turns calls written as text into tool-call events, by the tags of a TOOLFORMAT. Text between the tags that is not a call
 * stays text, so nothing is lost. Whitespace around calls is dropped. Tags may be split over any number of pieces.
 */
export function splitToolCalls(
  format: ToolFormat,
  { parallel, makeId = randomCallId }: SplitToolCallsOptions,
): EventReader {
  const splitter = new ToolCallSplitter(format, parallel, makeId);
  return function* (event) {
    if (event.type === "text-delta") yield* splitter.push(event.text, event.logprobs);
    else if (event.type === "done") {
      const { stopSequence, ...done } = event;
      const isEndOfCall = stopSequence !== undefined && stopSequence === format.callEnd;
      yield* splitter.flush(isEndOfCall ? format.callEnd : "");
      const called = splitter.calls > 0 && event.reason === "stop";
      // The end tag is our own stop sequence, unknown to the client.
      const end = isEndOfCall ? done : event;
      yield called ? { ...end, reason: "tool_calls" } : end;
    } else yield event;
  };
}

class ToolCallSplitter {
  readonly #format: ToolFormat;
  readonly #parallel: boolean;
  readonly #makeId: () => string;
  #inside = false;
  #held = "";
  #logprobs: TokenLogprob[] = [];
  /** A call has ended and there has been no text since. */
  #behindCall = false;
  calls = 0;

  constructor(format: ToolFormat, parallel: boolean, makeId: () => string) {
    this.#format = format;
    this.#parallel = parallel;
    this.#makeId = makeId;
  }

  *push(text: string, logprobs: readonly TokenLogprob[] = []): Generator<GenerationEvent> {
    this.#held += text;
    this.#logprobs.push(...logprobs);
    while (yield* this.#step());
  }

  /**
   * The text is complete: an open call without an end tag ends here, and held text is not a tag.
   * @param endTag the end tag at which the engine stopped
   */
  *flush(endTag: string): Generator<GenerationEvent> {
    if (this.#inside) {
      const body = this.#held;
      this.#held = "";
      yield* this.#emitCall(body, endTag);
    } else if (this.calls === 0 || this.#held.trim() !== "") yield* this.#emitText(this.#held);
    this.#held = "";
  }

  /** Handles the next tag in the held text; true if there may be another one after it. */
  *#step(): Generator<GenerationEvent, boolean> {
    const { callStart, callEnd } = this.#format;
    const tag = this.#inside ? callEnd : callStart;
    const at = tag === "" ? -1 : this.#held.indexOf(tag);
    if (at >= 0) {
      const before = this.#held.slice(0, at);
      this.#held = this.#held.slice(at + tag.length);
      this.#inside = !this.#inside;
      if (this.#inside) yield* this.#emitText(before.trimEnd());
      else yield* this.#emitCall(before, callEnd);
      return true;
    }
    if (!this.#inside) {
      // Whitespace before a call is dropped, so trailing whitespace is held back with a partial tag.
      const whole = this.#held.slice(0, this.#held.length - partialTagLength(this.#held, callStart));
      const ready = whole.trimEnd().length;
      yield* this.#emitText(this.#held.slice(0, ready));
      this.#held = this.#held.slice(ready);
    }
    return false;
  }

  *#emitText(text: string): Generator<GenerationEvent> {
    const shown = this.#behindCall ? text.trimStart() : text;
    if (shown === "") return;
    this.#behindCall = false;
    const logprobs = this.#logprobs;
    this.#logprobs = [];
    yield { type: "text-delta", text: shown, ...(logprobs.length > 0 && { logprobs }) };
  }

  *#emitCall(body: string, endTag: string): Generator<GenerationEvent> {
    const written = parseToolCalls(body);
    if (!written) {
      yield* this.#emitText(this.#format.callStart + body + endTag);
      return;
    }
    this.#logprobs = [];
    this.#behindCall = true;
    for (const call of written) {
      if (!this.#parallel && this.calls > 0) return;
      const index = this.calls;
      this.calls += 1;
      yield { type: "tool-call-start", index, id: this.#makeId(), name: call.name };
      yield { type: "tool-call-delta", index, arguments: call.arguments };
    }
  }
}

/** A call as written by the model: its name, and its arguments as JSON text. */
interface WrittenCall {
  readonly name: string;
  readonly arguments: string;
}

/**
 * Parses the text between call tags: a JSON object with `name` and `arguments` (Llama: `parameters`), or an array of such
 * objects (Mistral). Undefined if it is neither.
 */
function parseToolCalls(body: string): readonly WrittenCall[] | undefined {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return undefined;
  }
  const calls = (Array.isArray(value) ? value : [value]).map(readCall);
  return calls.length > 0 && calls.every((call) => call !== undefined) ? calls : undefined;
}

function readCall(value: unknown): WrittenCall | undefined {
  if (!isRecord(value)) return undefined;
  const name = value["name"];
  if (typeof name !== "string" || name === "") return undefined;
  const written = value["arguments"] ?? value["parameters"] ?? {};
  // Some models write the arguments as a string with JSON.
  if (typeof written === "string") return { name, arguments: written };
  return { name, arguments: JSON.stringify(written) };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
