import { INPUT } from "./custom-tool.ts";

/** The arguments up to the first character of the input. */
const HEAD = new RegExp(String.raw`^\s*\{\s*"${INPUT}"\s*:\s*"`);
const COMPACT_HEAD = `{"${INPUT}":"`;
/** A piece of a JSON string that can be decoded for itself. */
const UNIT = /[^"\\]+|\\[^u]|\\u[\dA-Fa-f]{4}/y;
/** Half of a pair: not text yet. */
const HIGH_SURROGATE = /^\\u[dD][89abAB]/;
/** The beginning of an escape that will not come to its end. */
const CUT_ESCAPE = /^(?:\\u[dD][89abAB][\dA-Fa-f]{2})?(?:\\(?:u[\dA-Fa-f]{0,3})?)?$/;

/** Takes the input of a custom tool out of a function's arguments, piece by piece as they come. */
export class InputDecoder {
  #state: "before" | "inside" | "after" | "other" = "before";
  #held = "";

  /** The text that a piece of the arguments adds. */
  push(piece: string): string {
    if (this.#state === "after") return "";
    this.#held += piece;
    if (this.#state === "before") {
      const head = HEAD.exec(this.#held)?.[0];
      if (head === undefined) {
        if (!COMPACT_HEAD.startsWith(this.#held.replaceAll(/\s/g, ""))) this.#state = "other";
        return "";
      }
      this.#state = "inside";
      this.#held = this.#held.slice(head.length);
    }
    return this.#state === "inside" ? this.#decode() : "";
  }

  /** The rest, once there are no more arguments; all of it, if they are not the ones that were asked for. */
  finish(): string {
    const [state, held] = [this.#state, this.#held];
    this.#state = "after";
    this.#held = "";
    if (state === "other") return otherInput(held);
    return state === "inside" && !CUT_ESCAPE.test(held) ? held : "";
  }

  #decode(): string {
    let [end, ready] = [0, 0];
    UNIT.lastIndex = 0;
    for (let unit = UNIT.exec(this.#held); unit; unit = UNIT.exec(this.#held)) {
      end = unit.index + unit[0].length;
      if (!HIGH_SURROGATE.test(unit[0])) ready = end;
    }
    const isEnd = this.#held.charAt(end) === '"';
    const text = this.#held.slice(0, isEnd ? end : ready);
    this.#held = isEnd ? "" : this.#held.slice(ready);
    if (isEnd) this.#state = "after";
    return unescaped(text);
  }
}

const CONTROLS: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** JSON text without quotes; models that are not held to JSON write line ends and tabs as they are. */
function unescaped(text: string): string {
  const strict = text.replaceAll(/[\n\r\t]/g, (control) => CONTROLS[control] ?? control);
  try {
    return String(JSON.parse(`"${strict}"`));
  } catch {
    return text;
  }
}

/** Arguments in another form: the only text in them, or all of them. */
function otherInput(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "string") return value;
    const [only, ...more]: unknown[] =
      typeof value === "object" && value !== null ? Object.values(value) : [];
    return typeof only === "string" && more.length === 0 ? only : text;
  } catch {
    return text;
  }
}
