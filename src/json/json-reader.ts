import { ServiceError } from "../errors/service-error.ts";
import { exceededBound, endOfString } from "./json-bounds.ts";

/** Maximum numbers in a body: as many token ids as can be converted to text at once. A number takes eight bytes. */
export const MAX_JSON_NUMBERS = 1024 * 1024 + 1024;

/**
 * Maximum other values in a body, including field names. Each takes up to a hundred bytes and some time for validation,
 * which runs without interruption; a conversation of ten thousand messages has half as many.
 */
export const MAX_JSON_ITEMS = 128 * 1024;

/** Longest number; more digits would not be significant. */
const MAX_NUMBER_LENGTH = 1024;
/** Longer than any escape. */
const MAX_ESCAPE_LENGTH = 6;

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const NUMBER_CHARACTERS = /[-+.\deE]*/y;
const LITERALS: ReadonlyMap<string, { readonly text: string; readonly value: boolean | null }> = new Map([
  ["t", { text: "true", value: true }],
  ["f", { text: "false", value: false }],
  ["n", { text: "null", value: null }],
]);

type Container = { readonly list: unknown[] } | { readonly object: Record<string, unknown>; name: string };

/** Token that may follow. */
type Expected = "value" | "value-or-end" | "name" | "name-or-end" | "colon" | "comma-or-end" | "nothing";

/**
 * Parses a JSON text that arrives in chunks, with the same result as JSON.parse. Never has the complete text in memory,
 * and rejects it at the first character that exceeds the depth or the number of values.
 */
export class JsonReader {
  readonly #what: string;
  readonly #open: Container[] = [];
  #expected: Expected = "value";
  /** Incomplete number, literal or escape at the end of the last chunk. */
  #pending = "";
  /** Parts of an incomplete string. */
  #string: string[] | undefined;
  #value: unknown;
  #numbers = 0;
  #items = 0;

  /** @param what names the text in errors: "The body" */
  constructor(what: string) {
    this.#what = what;
  }

  /**
   * Reads a chunk. Time and memory depend on its length, so split long ones.
   * @throws SyntaxError for invalid JSON, ServiceError invalid_json beyond the limits
   */
  write(chunk: string): void {
    this.#read(this.#pending + chunk, false);
  }

  /**
   * Returns the value, after the last chunk.
   * @throws SyntaxError if the text is incomplete
   */
  end(): unknown {
    this.#read(this.#pending, true);
    if (this.#expected !== "nothing" || this.#string) throw new SyntaxError("unexpected end");
    return this.#value;
  }

  #read(text: string, isLast: boolean): void {
    this.#pending = "";
    let at = this.#string ? this.#continueString(text, 0) : 0;
    while (at < text.length) {
      const code = text.charCodeAt(at);
      if (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) at += 1;
      else at = this.#readToken(text, at, String.fromCharCode(code), isLast);
    }
  }

  /** Returns the index after the token, or the end of the text if the token is incomplete. */
  #readToken(text: string, at: number, character: string, isLast: boolean): number {
    switch (character) {
      case '"':
        if (this.#expected === "name" || this.#expected === "name-or-end") this.#count();
        else this.#beginValue();
        this.#string = [];
        return this.#continueString(text, at + 1);
      case "[":
        this.#beginValue();
        this.#push({ list: [] }, "value-or-end");
        return at + 1;
      case "{":
        this.#beginValue();
        this.#push({ object: {}, name: "" }, "name-or-end");
        return at + 1;
      case "]":
      case "}":
        this.#close(character === "]");
        return at + 1;
      case ",":
        this.#expect("comma-or-end");
        this.#expected = "list" in this.#open.at(-1)! ? "value" : "name";
        return at + 1;
      case ":":
        this.#expect("colon");
        this.#expected = "value";
        return at + 1;
      default:
        return LITERALS.has(character)
          ? this.#readLiteral(text, at, character)
          : this.#readNumber(text, at, isLast);
    }
  }

  #readLiteral(text: string, at: number, character: string): number {
    const word = LITERALS.get(character)!;
    const written = text.slice(at, at + word.text.length);
    if (!word.text.startsWith(written)) throw new SyntaxError("no such word");
    if (written.length < word.text.length) return this.#keepPending(text, at);
    this.#beginValue();
    this.#add(word.value);
    return at + written.length;
  }

  #readNumber(text: string, at: number, isLast: boolean): number {
    NUMBER_CHARACTERS.lastIndex = at;
    const [written = ""] = NUMBER_CHARACTERS.exec(text) ?? [];
    const end = at + written.length;
    if (written === "" || written.length > MAX_NUMBER_LENGTH) throw new SyntaxError("no value");
    if (end === text.length && !isLast) return this.#keepPending(text, at);
    NUMBER.lastIndex = at;
    if (!NUMBER.test(text) || NUMBER.lastIndex !== end) throw new SyntaxError("no number");
    this.#checkValueExpected();
    this.#numbers += 1;
    if (this.#numbers > MAX_JSON_NUMBERS) throw this.#tooMany(`${MAX_JSON_NUMBERS} numbers`);
    this.#add(Number(written));
    return end;
  }

  /** Continues a string, past its closing quote if that has arrived. */
  #continueString(text: string, begin: number): number {
    const quote = endOfString(text, begin);
    const end = quote < 0 ? this.#endOfCompleteEscapes(text, begin) : quote;
    // A parser of escapes in JavaScript would be slower; the copy also lets the chunk be freed.
    const part: string = JSON.parse(`"${text.slice(begin, end)}"`);
    this.#string!.push(part);
    if (quote < 0) return this.#keepPending(text, end);
    const complete = this.#string!.length === 1 ? part : this.#string!.join("");
    this.#string = undefined;
    if (this.#expected === "name" || this.#expected === "name-or-end") {
      const container = this.#open.at(-1)!;
      if ("object" in container) container.name = complete;
      this.#expected = "colon";
    } else this.#add(complete);
    return quote + 1;
  }

  /** Index at which to split an incomplete string: before an incomplete escape. */
  #endOfCompleteEscapes(text: string, begin: number): number {
    const last = text.lastIndexOf("\\");
    if (last < begin || text.length - last >= MAX_ESCAPE_LENGTH) return text.length;
    let first = last;
    while (first > begin && text[first - 1] === "\\") first -= 1;
    if ((last - first) % 2 === 1) return text.length;
    return last === text.length - 1 || text[last + 1] === "u" ? last : text.length;
  }

  #keepPending(text: string, from: number): number {
    this.#pending = text.slice(from);
    return text.length;
  }

  #beginValue(): void {
    this.#checkValueExpected();
    this.#count();
  }

  #checkValueExpected(): void {
    if (this.#expected !== "value" && this.#expected !== "value-or-end")
      throw new SyntaxError("no value here");
  }

  #count(): void {
    this.#items += 1;
    if (this.#items > MAX_JSON_ITEMS)
      throw this.#tooMany(`${MAX_JSON_ITEMS} values other than numbers, names of fields included`);
  }

  #tooMany(limit: string): ServiceError {
    return new ServiceError("invalid_json", `${this.#what} may hold ${limit} at most.`);
  }

  #expect(expected: Expected): void {
    if (this.#expected !== expected) throw new SyntaxError("unexpected character");
  }

  #push(container: Container, expected: Expected): void {
    this.#open.push(container);
    if (this.#open.length > MAX_JSON_DEPTH) throw tooDeep(this.#what);
    this.#expected = expected;
  }

  #close(isList: boolean): void {
    const container = this.#open.pop();
    if (!container || "list" in container !== isList) throw new SyntaxError("unexpected bracket");
    if (this.#expected !== "comma-or-end" && this.#expected !== (isList ? "value-or-end" : "name-or-end"))
      throw new SyntaxError("unexpected bracket");
    this.#add("list" in container ? container.list : container.object);
  }

  #add(value: unknown): void {
    const container = this.#open.at(-1);
    this.#expected = container ? "comma-or-end" : "nothing";
    if (!container) this.#value = value;
    else if ("list" in container) container.list.push(value);
    else if (container.name === "__proto__") setPrototypeField(container.object, value);
    else container.object[container.name] = value;
  }
}

/** Sets `__proto__` as a normal field, as JSON.parse does, not as the prototype. */
function setPrototypeField(object: object, value: unknown): void {
  Object.defineProperty(object, "__proto__", { value, configurable: true, enumerable: true, writable: true });
}

/**
 * Maximum nesting of any JSON from clients or for engines: bodies, frames, schemas, tool-call arguments, template variables.
 * Code that walks such values may be recursive, also in llama.cpp, whose time to build a grammar is quadratic in the depth.
 */
export const MAX_JSON_DEPTH = 100;

/**
 * Refuses JSON text that is nested too deeply, before it is parsed. Invalid JSON may pass.
 * @param what names the text in the error: "The body"
 * @throws ServiceError invalid_json
 */
export function checkTextDepth(text: string, what: string, param?: string): void {
  const bounds = { depth: MAX_JSON_DEPTH, values: Number.POSITIVE_INFINITY };
  if (exceededBound(text, bounds)) throw tooDeep(what, param);
}

function tooDeep(what: string, param?: string): ServiceError {
  return new ServiceError(
    "invalid_json",
    `${what} may be nested ${MAX_JSON_DEPTH} levels deep at most.`,
    param === undefined ? {} : { param },
  );
}
