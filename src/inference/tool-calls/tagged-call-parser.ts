import { isRecord } from "../../json/json-values.ts";
import type { GenerationEvent, TokenLogprob } from "../../engine/protocol/generation.ts";
import type { ToolFormat } from "../../models/model.ts";
import { type EventFilter, lengthBefore } from "../stream-filters.ts";
import { randomCallId } from "./tool-call-ids.ts";

interface SplitToolCallsOptions {
  /** False: only one call per answer; its end tag is a stop sequence of the request. */
  parallel: boolean;
  makeId?: () => string;
}

/**
 * Creates a filter that turns calls between the tags of a TOOLFORMAT into tool-call events. Text between the tags that
 * is not a call stays text. Whitespace around calls is dropped. Tags may be split over any number of deltas.
 */
export function splitToolCalls(
  format: ToolFormat,
  { parallel, makeId = randomCallId }: SplitToolCallsOptions,
): EventFilter {
  const splitter = new ToolCallSplitter(format, parallel, makeId);
  return function* (event) {
    if (event.type === "text-delta") yield* splitter.push(event.text, event.logprobs);
    else if (event.type === "done") {
      const { stopSequence, ...done } = event;
      const isEndOfCall = stopSequence !== undefined && stopSequence === format.callEnd;
      yield* splitter.flush(isEndOfCall ? format.callEnd : "");
      const called = splitter.calls > 0 && event.reason === "stop";
      // The end tag is a stop sequence that the client did not send.
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
  #buffered = "";
  #logprobs: TokenLogprob[] = [];
  /** True if there has been no text since the last call. */
  #isAfterCall = false;
  calls = 0;

  constructor(format: ToolFormat, parallel: boolean, makeId: () => string) {
    this.#format = format;
    this.#parallel = parallel;
    this.#makeId = makeId;
  }

  *push(text: string, logprobs: readonly TokenLogprob[] = []): Generator<GenerationEvent> {
    this.#buffered += text;
    this.#logprobs.push(...logprobs);
    while (yield* this.#step());
  }

  /**
   * Handles the end of the answer: an open call ends here, and buffered text is not a tag.
   * @param endTag end tag at which the engine stopped, or ""
   */
  *flush(endTag: string): Generator<GenerationEvent> {
    if (this.#inside) {
      const body = this.#buffered;
      this.#buffered = "";
      yield* this.#emitCall(body, endTag);
    } else if (this.calls === 0 || this.#buffered.trim() !== "") yield* this.#emitText(this.#buffered);
    this.#buffered = "";
  }

  /** Handles the next tag in the buffered text; returns true if there may be another one. */
  *#step(): Generator<GenerationEvent, boolean> {
    const { callStart, callEnd } = this.#format;
    const tag = this.#inside ? callEnd : callStart;
    const at = tag === "" ? -1 : this.#buffered.indexOf(tag);
    if (at >= 0) {
      const before = this.#buffered.slice(0, at);
      this.#buffered = this.#buffered.slice(at + tag.length);
      this.#inside = !this.#inside;
      if (this.#inside) yield* this.#emitText(before.trimEnd());
      else yield* this.#emitCall(before, callEnd);
      return true;
    }
    if (!this.#inside) {
      // Whitespace before a call is dropped, so trailing whitespace is buffered with a partial tag.
      const ready = lengthBefore(this.#buffered, callStart);
      yield* this.#emitText(this.#buffered.slice(0, ready));
      this.#buffered = this.#buffered.slice(ready);
    }
    return false;
  }

  *#emitText(text: string): Generator<GenerationEvent> {
    const trimmed = this.#isAfterCall ? text.trimStart() : text;
    if (trimmed === "") return;
    this.#isAfterCall = false;
    const logprobs = this.#logprobs;
    this.#logprobs = [];
    yield { type: "text-delta", text: trimmed, ...(logprobs.length > 0 && { logprobs }) };
  }

  *#emitCall(body: string, endTag: string): Generator<GenerationEvent> {
    const written = parseToolCalls(body);
    if (!written) {
      yield* this.#emitText(this.#format.callStart + body + endTag);
      return;
    }
    this.#logprobs = [];
    this.#isAfterCall = true;
    for (const call of written) {
      if (!this.#parallel && this.calls > 0) return;
      const index = this.calls;
      this.calls += 1;
      yield { type: "tool-call-start", index, id: this.#makeId(), name: call.name };
      yield { type: "tool-call-delta", index, arguments: call.arguments };
    }
  }
}

/** Tool call as written by the model; the arguments are JSON text. */
interface WrittenCall {
  readonly name: string;
  readonly arguments: string;
}

/**
 * Parses the text between call tags: a JSON object with `name` and `arguments` (Llama: `parameters`), or an array of
 * such objects (Mistral). Returns undefined for any other text.
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
