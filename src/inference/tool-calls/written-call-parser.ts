import type { GenerationEvent } from "../../engine/protocol/generation.ts";
import type { EventFilter } from "../stream-filters.ts";
import { randomCallId } from "./tool-call-ids.ts";

/** Format of a family's tool calls: a head with the tool's name, the arguments as a JSON object, a tail. */
export interface CallFormat {
  readonly heads: readonly Head[];
  /** Characters that may follow the arguments, in any number. */
  readonly tail: string;
  /** True if heads begin with a tag; otherwise they may be the beginning of any JSON. */
  readonly isTagged: boolean;
}

interface WrittenCallsOptions {
  /** Names of the request's tools; calls of other names are text. */
  readonly names: readonly string[];
  /** False: all calls but the first are dropped. */
  readonly parallel: boolean;
  readonly makeId?: () => string;
}

/**
 * Creates a filter that turns calls in the model's own format into tool-call events; the arguments are streamed. Text
 * that only resembles the beginning of a call stays text. A call that is truncated before its arguments is dropped.
 */
export function readWrittenCalls(format: CallFormat, options: WrittenCallsOptions): EventFilter {
  const reader = new WrittenCallsReader(format, options);
  return function* (event) {
    if (event.type === "text-delta") {
      if (event.logprobs) yield { ...event, text: "" };
      yield* reader.push(event.text);
    } else if (event.type === "done") {
      yield* reader.flush(event.reason === "length");
      yield reader.calls > 0 && event.reason === "stop" ? { ...event, reason: "tool_calls" } : event;
    } else yield event;
  };
}

class WrittenCallsReader {
  readonly #format: CallFormat;
  readonly #options: WrittenCallsOptions;
  #state: "text" | "head" | "arguments" | "tail" = "text";
  #buffered = "";
  #end = new JsonEnd();
  calls = 0;

  constructor(format: CallFormat, options: WrittenCallsOptions) {
    this.#format = format;
    this.#options = options;
  }

  *push(text: string): Generator<GenerationEvent> {
    this.#buffered += text;
    while (this.#buffered !== "" && (yield* this.#step()));
  }

  /** Handles the end of the answer: the buffered text is not a call. */
  *flush(isCutOff: boolean): Generator<GenerationEvent> {
    const text = this.#buffered.trimEnd();
    if (this.#state === "text" && text !== "" && !(isCutOff && this.#isHead(text)))
      yield* this.#text(this.#buffered);
    this.#buffered = "";
  }

  *#step(): Generator<GenerationEvent, boolean> {
    if (this.#state === "text") return yield* this.#findHead();
    if (this.#state === "tail") {
      const rest = this.#buffered.replace(tailPattern(this.#format.tail), "");
      this.#buffered = rest;
      if (rest !== "") this.#state = "text";
      return rest !== "";
    }
    if (this.#state === "head") {
      this.#buffered = this.#buffered.trimStart();
      if (this.#buffered === "") return false;
      this.#state = "arguments";
    }
    const end = this.#end.push(this.#buffered);
    const written = this.#buffered.slice(0, end);
    this.#buffered = this.#buffered.slice(written.length);
    if (this.#emitsCall) yield { type: "tool-call-delta", index: this.calls - 1, arguments: written };
    if (end === undefined) return false;
    this.#state = "tail";
    return true;
  }

  get #emitsCall(): boolean {
    return this.#options.parallel || this.calls === 1;
  }

  *#findHead(): Generator<GenerationEvent, boolean> {
    const { heads } = this.#format;
    const begins = new Set(heads.map(([first = ""]) => first.charAt(0)));
    for (let at = 0; at < this.#buffered.length; at += 1) {
      if (!begins.has(this.#buffered.charAt(at))) continue;
      const match = matchHead(this.#buffered.slice(at), heads, this.#options.names);
      if (match.kind === "none") continue;
      const before = this.#buffered.slice(0, at);
      // Whitespace before a call is dropped, so it is buffered with the beginning of a call.
      yield* this.#text(before.trimEnd());
      if (match.kind === "partial") {
        this.#buffered = before.slice(before.trimEnd().length) + this.#buffered.slice(at);
        return false;
      }
      this.#buffered = this.#buffered.slice(at + match.length);
      this.#state = "head";
      this.#end = new JsonEnd();
      this.calls += 1;
      const id = (this.#options.makeId ?? randomCallId)();
      if (this.#emitsCall) yield { type: "tool-call-start", index: this.calls - 1, id, name: match.name };
      return true;
    }
    const ready = this.#buffered.trimEnd();
    yield* this.#text(ready);
    this.#buffered = this.#buffered.slice(ready.length);
    return false;
  }

  *#text(text: string): Generator<GenerationEvent> {
    if (text !== "") yield { type: "text-delta", text };
  }

  /** True if a partial head is long enough not to be ordinary text. */
  #isHead(partialHead: string): boolean {
    return this.#format.isTagged || partialHead.trimStart().length > 1;
  }
}

function tailPattern(characters: string): RegExp {
  return new RegExp(`^(?:\\s|[${characters.replaceAll(/[\]\\]/g, "\\$&")}])+`);
}

/** Parts of the beginning of a call: literal text, NAME for the name of a tool, ID for an id of letters and digits. */
type Head = readonly string[];

type HeadMatch =
  | { readonly kind: "none" }
  /** More text may complete the head. */
  | { readonly kind: "partial" }
  /** @param length characters of the head */
  | { readonly kind: "complete"; readonly length: number; readonly name: string };

const NONE: HeadMatch = { kind: "none" };
const PARTIAL: HeadMatch = { kind: "partial" };

/** Matches the beginning of a text with the heads. Whitespace between the characters of literal text is ignored. */
function matchHead(text: string, heads: readonly Head[], names: readonly string[]): HeadMatch {
  let found = NONE;
  for (const name of names) {
    for (const head of heads) {
      const match = matchParts(text, head, name);
      if (match.kind === "complete") return match;
      if (match.kind === "partial") found = match;
    }
  }
  return found;
}

function matchParts(text: string, head: Head, name: string): HeadMatch {
  let at = 0;
  for (const part of head) {
    if (part === "ID") {
      while (at < text.length && /[A-Za-z0-9]/.test(text[at]!)) at += 1;
      if (at >= text.length) return PARTIAL;
    } else {
      const end = matchLiteral(text, at, part === "NAME" ? name : part);
      if (typeof end !== "number") return end;
      at = end;
    }
  }
  return { kind: "complete", length: at, name };
}

/** Returns the end of the literal text, or why it does not match. */
function matchLiteral(text: string, start: number, literal: string): number | HeadMatch {
  let at = start;
  for (const character of literal) {
    while (at < text.length && isBlank(text[at]!)) at += 1;
    if (at >= text.length) return PARTIAL;
    if (text[at] !== character) return NONE;
    at += 1;
  }
  return at;
}

function isBlank(character: string): boolean {
  return character.trim() === "";
}

/** Finds the end of a JSON object in a stream of text. */
class JsonEnd {
  #depth = 0;
  #inText = false;
  #escaped = false;

  /** Returns the number of characters up to the end of the object; undefined if it continues. */
  push(text: string): number | undefined {
    for (let at = 0; at < text.length; at += 1) {
      const character = text[at]!;
      if (this.#escaped) this.#escaped = false;
      else if (this.#inText) {
        if (character === "\\") this.#escaped = true;
        else if (character === '"') this.#inText = false;
      } else if (character === '"') this.#inText = true;
      else if (character === "{" || character === "[") this.#depth += 1;
      else if (character === "}" || character === "]") {
        this.#depth -= 1;
        if (this.#depth <= 0) return at + 1;
      }
    }
    return undefined;
  }
}
