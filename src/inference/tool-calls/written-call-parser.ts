import type { GenerationEvent } from "../../engine/protocol/generation.ts";
import type { EventReader } from "../stream-filters.ts";
import { randomCallId } from "./tool-call-ids.ts";

/** How the models of a family write a call: a head with the tool's name, the arguments as a JSON object, a tail. */
export interface CallFormat {
  readonly heads: readonly Head[];
  /** Characters that may follow the arguments, in any number. */
  readonly tail: string;
  /** The head begins with a tag; otherwise it may be the beginning of any JSON. */
  readonly isTagged: boolean;
}

interface WrittenCallsOptions {
  /** Names of the tools that were offered; what looks like a call of another one is text. */
  readonly names: readonly string[];
  /** False: all calls but the first are dropped. */
  readonly parallel: boolean;
  readonly makeId?: () => string;
}

/**
 * Turns calls that a model has written into events; the arguments are passed on as they come. What only looks like the
 * beginning of a call is text. Of a call that is cut off before its arguments, nothing remains.
 */
export function readWrittenCalls(format: CallFormat, options: WrittenCallsOptions): EventReader {
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
  #held = "";
  #end = new JsonEnd();
  calls = 0;

  constructor(format: CallFormat, options: WrittenCallsOptions) {
    this.#format = format;
    this.#options = options;
  }

  *push(text: string): Generator<GenerationEvent> {
    this.#held += text;
    while (this.#held !== "" && (yield* this.#step()));
  }

  /** The answer has ended: what is held is not a call. */
  *flush(isCutOff: boolean): Generator<GenerationEvent> {
    const begun = this.#held.trimEnd();
    if (this.#state === "text" && begun !== "" && !(isCutOff && this.#isHead(begun)))
      yield* this.#text(this.#held);
    this.#held = "";
  }

  *#step(): Generator<GenerationEvent, boolean> {
    if (this.#state === "text") return yield* this.#lookForHead();
    if (this.#state === "tail") {
      const rest = this.#held.replace(tailPattern(this.#format.tail), "");
      this.#held = rest;
      if (rest !== "") this.#state = "text";
      return rest !== "";
    }
    if (this.#state === "head") {
      this.#held = this.#held.trimStart();
      if (this.#held === "") return false;
      this.#state = "arguments";
    }
    const end = this.#end.push(this.#held);
    const written = this.#held.slice(0, end);
    this.#held = this.#held.slice(written.length);
    if (this.#isShown) yield { type: "tool-call-delta", index: this.calls - 1, arguments: written };
    if (end === undefined) return false;
    this.#state = "tail";
    return true;
  }

  get #isShown(): boolean {
    return this.#options.parallel || this.calls === 1;
  }

  *#lookForHead(): Generator<GenerationEvent, boolean> {
    const { heads } = this.#format;
    const begins = new Set(heads.map(([first = ""]) => first.charAt(0)));
    for (let at = 0; at < this.#held.length; at += 1) {
      if (!begins.has(this.#held.charAt(at))) continue;
      const match = matchHead(this.#held.slice(at), heads, this.#options.names);
      if (match.kind === "none") continue;
      const before = this.#held.slice(0, at);
      // Blanks before a call are dropped, so they are held back with what may become one.
      yield* this.#text(before.trimEnd());
      if (match.kind === "begun") {
        this.#held = before.slice(before.trimEnd().length) + this.#held.slice(at);
        return false;
      }
      this.#held = this.#held.slice(at + match.length);
      this.#state = "head";
      this.#end = new JsonEnd();
      this.calls += 1;
      const id = (this.#options.makeId ?? randomCallId)();
      if (this.#isShown) yield { type: "tool-call-start", index: this.calls - 1, id, name: match.name };
      return true;
    }
    const ready = this.#held.trimEnd();
    yield* this.#text(ready);
    this.#held = this.#held.slice(ready.length);
    return false;
  }

  *#text(text: string): Generator<GenerationEvent> {
    if (text !== "") yield { type: "text-delta", text };
  }

  /** Whether what is held has more of a head than any text might have. */
  #isHead(held: string): boolean {
    return this.#format.isTagged || held.trimStart().length > 1;
  }
}

function tailPattern(characters: string): RegExp {
  return new RegExp(`^(?:\\s|[${characters.replaceAll(/[\]\\]/g, "\\$&")}])+`);
}

/** The beginning of a call, piece by piece: literal text, the name of a tool, or an id of letters and digits. */
type Head = readonly string[];

type HeadMatch =
  /** It is not one. */
  | { readonly kind: "none" }
  /** It may become one. */
  | { readonly kind: "begun" }
  /** @param length what of the text it takes */
  | { readonly kind: "whole"; readonly length: number; readonly name: string };

const NONE: HeadMatch = { kind: "none" };
const BEGUN: HeadMatch = { kind: "begun" };

/** Whether a text begins with one of the heads. Blanks between the characters of literal text do not count. */
function matchHead(text: string, heads: readonly Head[], names: readonly string[]): HeadMatch {
  let found = NONE;
  for (const name of names) {
    for (const head of heads) {
      const match = matchPieces(text, head, name);
      if (match.kind === "whole") return match;
      if (match.kind === "begun") found = match;
    }
  }
  return found;
}

function matchPieces(text: string, head: Head, name: string): HeadMatch {
  let at = 0;
  for (const piece of head) {
    if (piece === "ID") {
      while (at < text.length && /[A-Za-z0-9]/.test(text[at]!)) at += 1;
      if (at >= text.length) return BEGUN;
    } else {
      const end = matchLiteral(text, at, piece === "NAME" ? name : piece);
      if (typeof end !== "number") return end;
      at = end;
    }
  }
  return { kind: "whole", length: at, name };
}

/** Where the literal text ends. */
function matchLiteral(text: string, start: number, literal: string): number | HeadMatch {
  let at = start;
  for (const character of literal) {
    while (at < text.length && isBlank(text[at]!)) at += 1;
    if (at >= text.length) return BEGUN;
    if (text[at] !== character) return NONE;
    at += 1;
  }
  return at;
}

function isBlank(character: string): boolean {
  return character.trim() === "";
}

/** Finds the end of a JSON object in pieces of text. */
class JsonEnd {
  #depth = 0;
  #inText = false;
  #escaped = false;

  /** How much of a piece belongs to the object; undefined if it goes on. */
  push(piece: string): number | undefined {
    for (let at = 0; at < piece.length; at += 1) {
      const character = piece[at]!;
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
