import { createHash } from "node:crypto";
import { ServiceError } from "../errors/service-error.ts";
import { parseJsonBytes } from "../json/parse-json.ts";
import type { BatchStore } from "./batch-store.ts";
import type { Batch, BatchFormat, InputProblem, WaitingLine } from "./batch.ts";

/** Lines that are added at once: some milliseconds. */
const LINES_AT_ONCE = 500;
/** As many as a person reads. */
const MAX_PROBLEMS = 100;

interface ReadOptions {
  readonly store: Pick<BatchStore, "addLines" | "dropLines">;
  readonly format: BatchFormat;
  readonly maxLines: number;
  readonly maxLineBytes: number;
}

/**
 * Reads the input of a batch into the store, and checks each line.
 * @param pieces the content of the input file
 * @returns the number of lines, and what is wrong with them
 */
export async function readInput(
  { id, endpoint }: Pick<Batch, "id" | "endpoint">,
  pieces: AsyncIterable<Uint8Array>,
  { store, format, maxLines, maxLineBytes }: ReadOptions,
): Promise<{ total: number; problems: readonly InputProblem[] }> {
  // A process may have ended in the middle of this.
  await store.dropLines(id);
  const problems: InputProblem[] = [];
  let total = 0;
  let ready: WaitingLine[] = [];
  const add = async (): Promise<void> => {
    for (const line of await store.addLines(id, ready)) problems.push(duplicate(line));
    ready = [];
  };
  for await (const { number, start, length, bytes } of splitLines(pieces, maxLineBytes)) {
    total += 1;
    if (total > maxLines) {
      problems.push(
        wholeFile("too_many_lines", `The file has more than ${maxLines} lines (batches.max_lines).`),
      );
      break;
    }
    const read = bytes ? await readLine(bytes, format, endpoint) : tooLong(maxLineBytes);
    if ("code" in read) problems.push({ ...read, line: number });
    else {
      const { customId, model, beginning } = read;
      ready.push({ number, customId, model, order: lineOrder(beginning), start, length });
    }
    if (ready.length >= LINES_AT_ONCE) await add();
    if (problems.length >= MAX_PROBLEMS) break;
  }
  await add();
  if (total === 0) problems.push(wholeFile("empty_file", "The file has no lines."));
  problems.sort((one, other) => (one.line ?? 0) - (other.line ?? 0));
  return { total, problems: problems.slice(0, MAX_PROBLEMS) };
}

/** Within the limits of a body, which the line's becomes. */
async function readLine(
  bytes: Uint8Array,
  format: BatchFormat,
  endpoint: string,
): Promise<ReturnType<BatchFormat["read"]>> {
  if (hasMark(bytes)) {
    const message = "This line begins with a byte order mark, which only the file may begin with; remove it.";
    return { code: "invalid_json_line", message, param: null };
  }
  let value: unknown;
  try {
    value = await parseJsonBytes(readInputOnly(bytes), "This line");
  } catch (error) {
    return { code: "invalid_json_line", message: ServiceError.from(error).message, param: null };
  }
  return format.read(value, endpoint);
}

async function* readInputOnly(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  yield bytes;
}

function tooLong(maxLineBytes: number): Omit<InputProblem, "line"> {
  const message = `This line is longer than ${maxLineBytes} bytes, and would not be taken as a request (http.body_limit).`;
  return { code: "line_too_long", message, param: null };
}

function duplicate({ customId, number }: WaitingLine): InputProblem {
  const shown = customId.slice(0, 100);
  const message = `The custom_id "${shown}" is that of an earlier line; each line needs one of its own.`;
  return { code: "duplicate_custom_id", message, param: "custom_id", line: number };
}

function wholeFile(code: string, message: string): InputProblem {
  return { code, message, param: null, line: null };
}

const LINE_BREAK = 10;
/** What some programs write in front of UTF-8. */
const BYTE_ORDER_MARK: readonly number[] = [0xef, 0xbb, 0xbf];

interface FileLine {
  /** From 1. */
  readonly number: number;
  /** In the file, in bytes. */
  readonly start: number;
  readonly length: number;
  /** Absent if the line is too long. */
  readonly bytes?: Uint8Array;
}

/** The lines of a file that are not blank, without a byte order mark at its beginning. Of one that is too long, no more than that is in memory. */
async function* splitLines(
  pieces: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<FileLine, void, undefined> {
  let number = 1;
  let start = 0;
  let length = 0;
  let held: Uint8Array[] = [];
  const take = (piece: Uint8Array): void => {
    length += piece.byteLength;
    if (length <= maxBytes) held.push(piece);
    else held = [];
  };
  const line = (): FileLine | undefined => {
    const whole = length <= maxBytes ? joined(held, length) : undefined;
    const skipped = start === 0 && whole && hasMark(whole) ? BYTE_ORDER_MARK.length : 0;
    const bytes = whole?.subarray(skipped);
    if (bytes && isBlank(bytes)) return undefined;
    return { number, start: start + skipped, length: length - skipped, ...(bytes && { bytes }) };
  };
  for await (const piece of pieces) {
    let from = 0;
    for (let at = piece.indexOf(LINE_BREAK); at >= 0; at = piece.indexOf(LINE_BREAK, from)) {
      take(piece.subarray(from, at));
      const found = line();
      if (found) yield found;
      number += 1;
      start += length + 1;
      length = 0;
      held = [];
      from = at + 1;
    }
    if (from < piece.byteLength) take(piece.subarray(from));
  }
  const last = line();
  if (last) yield last;
}

function joined(pieces: readonly Uint8Array[], length: number): Uint8Array {
  const [only] = pieces;
  if (only && pieces.length === 1) return only;
  const whole = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.byteLength;
  }
  return whole;
}

/** Whether a text begins with a byte order mark. */
function hasMark(bytes: Uint8Array): boolean {
  return BYTE_ORDER_MARK.every((byte, at) => bytes[at] === byte);
}

/** Spaces, tabs and carriage returns. */
function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 32 || byte === 9 || byte === 13);
}

/** Characters that are compared themselves; the rest of a longer first piece is told apart by a digest. */
const COMPARED = 160;

/**
 * Where a line stands among others of its model: those with the same text in front are next to each other, so that what
 * the engine has read of one prompt serves the next.
 */
function lineOrder(pieces: readonly string[]): string {
  const [first = ""] = pieces;
  const digest = createHash("sha256").update(first).digest("base64").slice(0, 12);
  const beginning = beginningOf(pieces);
  // A lone half of a character, which a cut may leave, is no text for the database.
  return `${beginning.slice(0, COMPARED).toWellFormed().replaceAll("\u0000", " ")} ${digest}`;
}

function beginningOf(pieces: readonly string[]): string {
  let text = "";
  for (const piece of pieces) {
    text += piece.slice(0, COMPARED);
    if (text.length >= COMPARED) break;
  }
  return text;
}
