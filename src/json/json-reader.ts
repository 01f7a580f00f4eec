import { ServiceError } from "../errors/service-error.ts";
import { endOfString } from "./json-bounds.ts";
import { MAX_JSON_DEPTH, tooDeep } from "./json-depth.ts";

/** Most numbers in one body: as many tokens as can be turned into text at once. A number costs eight bytes. */
export const MAX_JSON_NUMBERS = 1024 * 1024 + 1024;

/**
 * Most other values in one body, names of fields included. Each costs up to a hundred bytes and its share of the
 * validation, which nothing interrupts; a conversation of ten thousand messages has half as many.
 */
export const MAX_JSON_ITEMS = 128 * 1024;

/** Longest number as it is written: no reader keeps more digits than this. */
const MAX_NUMBER_LENGTH = 1024;
/** Longer than any escape. */
const LONGEST_ESCAPE = 6;

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const MORE_OF_A_NUMBER = /[-+.\deE]*/y;
const WORDS: ReadonlyMap<string, { readonly text: string; readonly value: boolean | null }> = new Map([
  ["t", { text: "true", value: true }],
  ["f", { text: "false", value: false }],
  ["n", { text: "null", value: null }],
]);

type Container = { readonly list: unknown[] } | { readonly object: Record<string, unknown>; name: string };

/** What may come next. */
type Expected = "value" | "value-or-end" | "name" | "name-or-end" | "colon" | "comma-or-end" | "nothing";

/**
 * Parses one JSON text that comes in pieces, to the same value as JSON.parse. It never holds the whole text, and
 * refuses it at the first character that makes it too deep or its values too many.
 */
export class JsonReader {
  readonly #what: string;
  readonly #open: Container[] = [];
  #expected: Expected = "value";
  /** What could not be read until more comes: a part of a number, a word or an escape. */
  #rest = "";
  /** The pieces of a string that has not ended. */
  #string: string[] | undefined;
  #value: unknown;
  #numbers = 0;
  #items = 0;

  /** @param what names the text in errors: "The body" */
  constructor(what: string) {
    this.#what = what;
  }

  /**
   * Reads a piece; it takes time and memory as the piece is long, so cut long ones.
   * @throws SyntaxError for what is not JSON, ServiceError invalid_json for what is beyond the limits
   */
  write(piece: string): void {
    this.#read(this.#rest + piece, false);
  }

  /**
   * The value, when all has been written.
   * @throws SyntaxError when the text is not complete
   */
  end(): unknown {
    this.#read(this.#rest, true);
    if (this.#expected !== "nothing" || this.#string) throw new SyntaxError("unexpected end");
    return this.#value;
  }

  #read(text: string, isLast: boolean): void {
    this.#rest = "";
    let at = this.#string ? this.#goOnWithString(text, 0) : 0;
    while (at < text.length) {
      const code = text.charCodeAt(at);
      if (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) at += 1;
      else at = this.#readToken(text, at, String.fromCharCode(code), isLast);
    }
  }

  /** Returns where the token ends: at the end of the text, too, when the rest of it has yet to come. */
  #readToken(text: string, at: number, character: string, isLast: boolean): number {
    switch (character) {
      case '"':
        if (this.#expected === "name" || this.#expected === "name-or-end") this.#count();
        else this.#beginValue();
        this.#string = [];
        return this.#goOnWithString(text, at + 1);
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
        return WORDS.has(character)
          ? this.#readWord(text, at, character)
          : this.#readNumber(text, at, isLast);
    }
  }

  #readWord(text: string, at: number, character: string): number {
    const word = WORDS.get(character)!;
    const written = text.slice(at, at + word.text.length);
    if (!word.text.startsWith(written)) throw new SyntaxError("no such word");
    if (written.length < word.text.length) return this.#keep(text, at);
    this.#beginValue();
    this.#add(word.value);
    return at + written.length;
  }

  #readNumber(text: string, at: number, isLast: boolean): number {
    MORE_OF_A_NUMBER.lastIndex = at;
    const [written = ""] = MORE_OF_A_NUMBER.exec(text) ?? [];
    const end = at + written.length;
    if (written === "" || written.length > MAX_NUMBER_LENGTH) throw new SyntaxError("no value");
    if (end === text.length && !isLast) return this.#keep(text, at);
    NUMBER.lastIndex = at;
    if (!NUMBER.test(text) || NUMBER.lastIndex !== end) throw new SyntaxError("no number");
    this.#mayBegin();
    this.#numbers += 1;
    if (this.#numbers > MAX_JSON_NUMBERS) throw this.#tooMany(`${MAX_JSON_NUMBERS} numbers`);
    this.#add(Number(written));
    return end;
  }

  /** Reads on in a string, past its closing quote if that has arrived. */
  #goOnWithString(text: string, begin: number): number {
    const quote = endOfString(text, begin);
    const end = quote < 0 ? this.#endOfWholeEscapes(text, begin) : quote;
    // An own parser of escapes would be slower, and the copy does not hold on to the piece.
    const part: string = JSON.parse(`"${text.slice(begin, end)}"`);
    this.#string!.push(part);
    if (quote < 0) return this.#keep(text, end);
    const whole = this.#string!.length === 1 ? part : this.#string!.join("");
    this.#string = undefined;
    if (this.#expected === "name" || this.#expected === "name-or-end") {
      const container = this.#open.at(-1)!;
      if ("object" in container) container.name = whole;
      this.#expected = "colon";
    } else this.#add(whole);
    return quote + 1;
  }

  /** Where to cut a string that goes on: in front of an escape of which a part has yet to come. */
  #endOfWholeEscapes(text: string, begin: number): number {
    const last = text.lastIndexOf("\\");
    if (last < begin || text.length - last >= LONGEST_ESCAPE) return text.length;
    let first = last;
    while (first > begin && text[first - 1] === "\\") first -= 1;
    if ((last - first) % 2 === 1) return text.length;
    return last === text.length - 1 || text[last + 1] === "u" ? last : text.length;
  }

  #keep(text: string, from: number): number {
    this.#rest = text.slice(from);
    return text.length;
  }

  #beginValue(): void {
    this.#mayBegin();
    this.#count();
  }

  #mayBegin(): void {
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

/** As JSON.parse has it: a field like any other, not the prototype. */
function setPrototypeField(object: object, value: unknown): void {
  Object.defineProperty(object, "__proto__", { value, configurable: true, enumerable: true, writable: true });
}
