import { nextTimeSlice } from "../async/timers.ts";
import { ServiceError } from "../errors/service-error.ts";
import { checkTextDepth, JsonReader } from "./json-reader.ts";

/** Up to this length, in bytes or characters, a text is parsed immediately, in a millisecond at most. */
export const PARSED_AT_ONCE = 16 * 1024;
/** Up to this length it is parsed whole, in a separate turn of some milliseconds. It cannot contain too many values. */
const PARSED_WHOLE = 256 * 1024;
/** Characters of a longer text that are read per turn. */
const STEP = 64 * 1024;

/**
 * Parses a text of any length without blocking the event loop.
 * @param what names the text in errors: "The frame"
 * @throws ServiceError invalid_json
 */
export async function parseJsonText(text: string, what: string): Promise<unknown> {
  if (text.length > PARSED_AT_ONCE) await nextTimeSlice();
  if (text.length <= PARSED_WHOLE) return parseWhole(text, what);
  return await blamed(what, async () => {
    const reader = new JsonReader(what);
    for (let at = 0; at < text.length; at += STEP) {
      reader.write(text.slice(at, at + STEP));
      await nextTimeSlice();
    }
    return reader.end();
  });
}

/** Parses a text of at most {@link PARSED_AT_ONCE} immediately. */
export function parseShortJson(text: string, what: string): unknown {
  return parseWhole(text, what);
}

/**
 * Parses UTF-8 text of any length as it arrives, without blocking the event loop: a short text when it is complete, a longer
 * one piece by piece.
 * @param whenEmpty stands for no text at all; undefined: that is an error
 * @throws ServiceError invalid_json, and what the pieces throw
 */
export async function parseJsonBytes(
  pieces: AsyncIterable<Uint8Array>,
  what: string,
  whenEmpty?: unknown,
): Promise<unknown> {
  let begun: Uint8Array[] = [];
  let size = 0;
  let long: LongText | undefined;
  for await (const piece of pieces) {
    size += piece.byteLength;
    if (long) await long.write(piece);
    else begun.push(piece);
    if (long || size <= PARSED_WHOLE) continue;
    long = new LongText(what);
    for (const earlier of begun) await long.write(earlier);
    begun = [];
  }
  if (long) return await long.end();
  if (size === 0 && whenEmpty !== undefined) return whenEmpty;
  if (size === 0) throw new ServiceError("invalid_json", `${what} is empty.`);
  if (size > PARSED_AT_ONCE) await nextTimeSlice();
  const bytes = begun.length === 1 ? begun[0]! : joined(begun, size);
  return await blamed(what, () => parseWhole(new TextDecoder("utf-8", { fatal: true }).decode(bytes), what));
}

function joined(pieces: readonly Uint8Array[], size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.byteLength;
  }
  return bytes;
}

class LongText {
  readonly #what: string;
  readonly #decoder = new TextDecoder("utf-8", { fatal: true });
  readonly #reader: JsonReader;

  constructor(what: string) {
    this.#what = what;
    this.#reader = new JsonReader(what);
  }

  async write(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.byteLength; at += STEP) {
      await nextTimeSlice();
      const step = bytes.subarray(at, at + STEP);
      await blamed(this.#what, () => this.#reader.write(this.#decoder.decode(step, { stream: true })));
    }
  }

  async end(): Promise<unknown> {
    await nextTimeSlice();
    return await blamed(this.#what, () => {
      this.#reader.write(this.#decoder.decode());
      return this.#reader.end();
    });
  }
}

function parseWhole(text: string, what: string): unknown {
  checkTextDepth(text, what);
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw notJson(what, cause);
  }
}

async function blamed<Result>(what: string, work: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (cause) {
    throw cause instanceof ServiceError ? cause : notJson(what, cause);
  }
}

/** JSON.parse's own message quotes the text, which may contain a prompt. */
function notJson(what: string, cause: unknown): ServiceError {
  return new ServiceError("invalid_json", `${what} is not valid JSON in UTF-8.`, { cause });
}
