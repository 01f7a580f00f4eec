import { nextTimeSlice } from "../async/timers.ts";
import { ServiceError } from "../errors/service-error.ts";
import { checkTextDepth, JsonReader } from "./json-reader.ts";

/** Maximum length, in bytes or characters, of a text that is parsed immediately, in a millisecond at most. */
export const MAX_IMMEDIATE_LENGTH = 16 * 1024;
/** Maximum length of a text that is parsed at once, in a separate tick of some milliseconds; it cannot have too many values. */
const MAX_UNSPLIT_LENGTH = 256 * 1024;
/** Characters of a longer text that are read per tick. */
const STEP_LENGTH = 64 * 1024;

/**
 * Parses a text of any length without blocking the event loop.
 * @param what names the text in errors: "The frame"
 * @throws ServiceError invalid_json
 */
export async function parseJsonText(text: string, what: string): Promise<unknown> {
  if (text.length > MAX_IMMEDIATE_LENGTH) await nextTimeSlice();
  if (text.length <= MAX_UNSPLIT_LENGTH) return parseShortJson(text, what);
  return await withJsonErrors(what, async () => {
    const reader = new JsonReader(what);
    for (let at = 0; at < text.length; at += STEP_LENGTH) {
      reader.write(text.slice(at, at + STEP_LENGTH));
      await nextTimeSlice();
    }
    return reader.end();
  });
}

/**
 * Parses UTF-8 text of any length as it arrives, without blocking the event loop: a short text when it is complete, a
 * longer one chunk by chunk.
 * @param whenEmpty result for an empty text; undefined: an empty text is an error
 * @throws ServiceError invalid_json, and errors of the chunks
 */
export async function parseJsonBytes(
  pieces: AsyncIterable<Uint8Array>,
  what: string,
  whenEmpty?: unknown,
): Promise<unknown> {
  let buffered: Uint8Array[] = [];
  let size = 0;
  let longText: LongText | undefined;
  for await (const piece of pieces) {
    size += piece.byteLength;
    if (longText) await longText.write(piece);
    else buffered.push(piece);
    if (longText || size <= MAX_UNSPLIT_LENGTH) continue;
    longText = new LongText(what);
    for (const earlier of buffered) await longText.write(earlier);
    buffered = [];
  }
  if (longText) return await longText.end();
  if (size === 0 && whenEmpty !== undefined) return whenEmpty;
  if (size === 0) throw new ServiceError("invalid_json", `${what} is empty.`);
  if (size > MAX_IMMEDIATE_LENGTH) await nextTimeSlice();
  const bytes = buffered.length === 1 ? buffered[0]! : joined(buffered, size);
  return await withJsonErrors(what, () =>
    parseShortJson(new TextDecoder("utf-8", { fatal: true }).decode(bytes), what),
  );
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
    for (let at = 0; at < bytes.byteLength; at += STEP_LENGTH) {
      await nextTimeSlice();
      const step = bytes.subarray(at, at + STEP_LENGTH);
      await withJsonErrors(this.#what, () =>
        this.#reader.write(this.#decoder.decode(step, { stream: true })),
      );
    }
  }

  async end(): Promise<unknown> {
    await nextTimeSlice();
    return await withJsonErrors(this.#what, () => {
      this.#reader.write(this.#decoder.decode());
      return this.#reader.end();
    });
  }
}

/** Parses a text at once, which takes a millisecond for {@link MAX_IMMEDIATE_LENGTH}. */
export function parseShortJson(text: string, what: string): unknown {
  checkTextDepth(text, what);
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw invalidJson(what, cause);
  }
}

async function withJsonErrors<Result>(what: string, work: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (cause) {
    throw cause instanceof ServiceError ? cause : invalidJson(what, cause);
  }
}

/** Error without JSON.parse's own message, which quotes the text and so perhaps a prompt. */
function invalidJson(what: string, cause: unknown): ServiceError {
  return new ServiceError("invalid_json", `${what} is not valid JSON in UTF-8.`, { cause });
}
