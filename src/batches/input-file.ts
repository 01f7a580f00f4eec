import { createHash } from "node:crypto";
import { ServiceError } from "../errors/service-error.ts";
import { parseJsonBytes } from "../json/parse-json.ts";
import type { Batch, BatchFormat, InputProblem, PendingLine } from "./batch.ts";

/** Lines added to the store at once, which takes some milliseconds. */
const INSERT_LINES = 500;
/** Maximum number of reported problems. */
const MAX_PROBLEMS = 100;

interface ReadOptions {
  /** Stores lines; returns those whose custom id an earlier line has. */
  readonly addLines: (lines: readonly PendingLine[]) => Promise<readonly PendingLine[]>;
  readonly format: BatchFormat;
  readonly maxLines: number;
  readonly maxLineBytes: number;
}

/**
 * Reads the input of a batch and validates each line.
 * @param chunks the content of the input file
 * @returns the number of lines, and their problems
 */
export async function readInput(
  { endpoint }: Pick<Batch, "endpoint">,
  chunks: AsyncIterable<Uint8Array>,
  { addLines, format, maxLines, maxLineBytes }: ReadOptions,
): Promise<{ total: number; problems: readonly InputProblem[] }> {
  const problems: InputProblem[] = [];
  let total = 0;
  let batchLines: PendingLine[] = [];
  const add = async (): Promise<void> => {
    for (const line of await addLines(batchLines)) problems.push(duplicateProblem(line));
    batchLines = [];
  };
  for await (const { number, start, length, bytes } of splitLines(chunks, maxLineBytes)) {
    total += 1;
    if (total > maxLines) {
      problems.push(
        fileProblem("too_many_lines", `The file has more than ${maxLines} lines (batches.max_lines).`),
      );
      break;
    }
    const read = bytes ? await readLine(bytes, format, endpoint) : tooLongProblem(maxLineBytes);
    if ("code" in read) problems.push({ ...read, line: number });
    else {
      const { customId, model, prefix } = read;
      batchLines.push({ number, customId, model, sortKey: lineSortKey(prefix), start, length });
    }
    if (batchLines.length >= INSERT_LINES) await add();
    if (problems.length >= MAX_PROBLEMS) break;
  }
  await add();
  if (total === 0) problems.push(fileProblem("empty_file", "The file has no lines."));
  problems.sort((one, other) => (one.line ?? 0) - (other.line ?? 0));
  return { total, problems: problems.slice(0, MAX_PROBLEMS) };
}

/** Parses a line within the JSON limits of a request body, which the line becomes. */
async function readLine(
  bytes: Uint8Array,
  format: BatchFormat,
  endpoint: string,
): Promise<ReturnType<BatchFormat["parseLine"]>> {
  if (hasByteOrderMark(bytes)) {
    const message = "This line begins with a byte order mark, which only the file may begin with; remove it.";
    return { code: "invalid_json_line", message, param: null };
  }
  let value: unknown;
  try {
    value = await parseJsonBytes(chunksOf(bytes), "This line");
  } catch (error) {
    return { code: "invalid_json_line", message: ServiceError.from(error).message, param: null };
  }
  return format.parseLine(value, endpoint);
}

async function* chunksOf(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  yield bytes;
}

function tooLongProblem(maxLineBytes: number): Omit<InputProblem, "line"> {
  const message = `This line is longer than ${maxLineBytes} bytes, and would not be taken as a request (http.body_limit).`;
  return { code: "line_too_long", message, param: null };
}

function duplicateProblem({ customId, number }: PendingLine): InputProblem {
  const shown = customId.slice(0, 100);
  const message = `The custom_id "${shown}" is that of an earlier line; each line needs one of its own.`;
  return { code: "duplicate_custom_id", message, param: "custom_id", line: number };
}

function fileProblem(code: string, message: string): InputProblem {
  return { code, message, param: null, line: null };
}

const LINE_BREAK = 10;
/** Bytes that some programs write in front of UTF-8. */
const BYTE_ORDER_MARK: readonly number[] = [0xef, 0xbb, 0xbf];

interface FileLine {
  /** Line number from 1. */
  readonly number: number;
  /** Offset in the file in bytes. */
  readonly start: number;
  readonly length: number;
  /** Content; absent if the line is too long. */
  readonly bytes?: Uint8Array;
}

/** Splits a file into non-blank lines without a leading byte order mark. Buffers at most `maxBytes` of a line. */
async function* splitLines(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<FileLine, void, undefined> {
  let number = 1;
  let start = 0;
  let length = 0;
  let buffered: Uint8Array[] = [];
  const take = (chunk: Uint8Array): void => {
    length += chunk.byteLength;
    if (length <= maxBytes) buffered.push(chunk);
    else buffered = [];
  };
  const line = (): FileLine | undefined => {
    const [only] = buffered;
    const whole = buffered.length === 1 ? only : Buffer.concat(buffered);
    const lineBytes = length <= maxBytes ? whole : undefined;
    const skipped = start === 0 && lineBytes && hasByteOrderMark(lineBytes) ? BYTE_ORDER_MARK.length : 0;
    const bytes = lineBytes?.subarray(skipped);
    if (bytes && isBlank(bytes)) return undefined;
    return { number, start: start + skipped, length: length - skipped, ...(bytes && { bytes }) };
  };
  for await (const chunk of chunks) {
    let from = 0;
    for (let at = chunk.indexOf(LINE_BREAK); at >= 0; at = chunk.indexOf(LINE_BREAK, from)) {
      take(chunk.subarray(from, at));
      const found = line();
      if (found) yield found;
      number += 1;
      start += length + 1;
      length = 0;
      buffered = [];
      from = at + 1;
    }
    if (from < chunk.byteLength) take(chunk.subarray(from));
  }
  const last = line();
  if (last) yield last;
}

function hasByteOrderMark(bytes: Uint8Array): boolean {
  return BYTE_ORDER_MARK.every((byte, at) => bytes[at] === byte);
}

/** Returns true if there are only spaces, tabs and carriage returns. */
function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 32 || byte === 9 || byte === 13);
}

/** Characters of the prompt in a sort key; a digest distinguishes longer first parts. */
const PREFIX_CHARACTERS = 160;

/**
 * Returns the sort key of a line: lines with the same prompt prefix become neighbors, so that the engine can reuse its
 * prompt cache.
 */
function lineSortKey(chunks: readonly string[]): string {
  const [first = ""] = chunks;
  const digest = createHash("sha256").update(first).digest("base64").slice(0, 12);
  const prefix = joinPrefix(chunks);
  // Slicing may leave a lone surrogate, which the database does not accept.
  return `${prefix.slice(0, PREFIX_CHARACTERS).toWellFormed().replaceAll("\u0000", " ")} ${digest}`;
}

function joinPrefix(chunks: readonly string[]): string {
  let text = "";
  for (const chunk of chunks) {
    text += chunk.slice(0, PREFIX_CHARACTERS);
    if (text.length >= PREFIX_CHARACTERS) break;
  }
  return text;
}
