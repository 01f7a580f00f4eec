import { ServiceError } from "../errors/service-error.ts";
import { parseJsonBytes } from "../json/parse-json.ts";
import type { BatchFormat } from "./batch-format.ts";
import type { BatchStore } from "./batch-store.ts";
import type { Batch, InputProblem, WaitingLine } from "./batch.ts";
import { lineOrder } from "./line-order.ts";
import { hasMark, splitLines } from "./split-lines.ts";

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
    value = await parseJsonBytes(only(bytes), "This line");
  } catch (error) {
    return { code: "invalid_json_line", message: ServiceError.from(error).message, param: null };
  }
  return format.read(value, endpoint);
}

async function* only(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
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
