import { createHash, randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import path from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { z } from "zod";
import { isSystemError } from "../../errors/exhausted-resource.ts";
import { toError } from "../../errors/to-error.ts";
import { tryJson } from "../../json/try-json.ts";
import { CliError, usageError } from "../cli-error.ts";
import { EXIT } from "../exit-codes.ts";

const lineSchema = z.looseObject({ url: z.string() });
/** How Anthropic's API has requests: each of them, or all in one body. */
const anthropicSchema = z.union([
  z.looseObject({ url: z.literal("/v1/messages") }),
  z.looseObject({ params: z.looseObject({ messages: z.array(z.unknown()) }) }),
  z.looseObject({ requests: z.array(z.unknown()) }),
]);

/** A file of requests on this machine. */
export interface BatchFile {
  readonly path: string;
  /** SHA-256 of its content, by which the batch that was made of it is found again. */
  readonly sha256: string;
  /** What its first line is for. */
  readonly endpoint: string;
}

/** Reads what there is to know of a file. @throws CliError */
export async function readBatchFile(file: string): Promise<BatchFile> {
  try {
    const first = await firstLineOf(file);
    if (anthropicSchema.safeParse(first).success) throw usageError(forAnthropic(file));
    const endpoint = lineSchema.safeParse(first).data?.url;
    const sum = createHash("sha256");
    for await (const piece of createReadStream(file)) sum.update(piece);
    if (endpoint !== undefined) return { path: file, sha256: sum.digest("hex"), endpoint };
  } catch (error) {
    if (error instanceof CliError) throw error;
    if (isSystemError(error) && error.code === "ENOENT")
      throw new CliError(EXIT.notFound, "file_not_found", `There is no file ${file}.`, error);
    if (isSystemError(error) && error.code === "EISDIR")
      throw usageError(`${file} is a folder; name a JSONL file of requests.`);
    throw usageError(`The file cannot be read: ${toError(error).message}`);
  }
  throw usageError(`${file} is not a file of requests: its first line must be a JSON object with a url.`);
}

function forAnthropic(file: string): string {
  return `${file} has requests for Anthropic's API: send them as {"requests": [{"custom_id", "params"}, …]} to POST /v1/messages/batches, or with Anthropic's SDK.`;
}

/** The first line that is not blank, as JSON; undefined if there is none. */
async function firstLineOf(file: string): Promise<unknown> {
  const input = createReadStream(file);
  try {
    for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
      if (line.trim() !== "") return tryJson(line.trim());
    }
    return undefined;
  } finally {
    input.destroy();
  }
}

/** The form by which a file is uploaded; the file is read as it is sent. */
export async function uploadForm(
  file: string,
): Promise<{ readonly headers: Record<string, string>; readonly body: () => Readable }> {
  const boundary = `daybreak-${randomUUID()}`;
  const name = encodeURIComponent(path.basename(file));
  const head =
    `--${boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n` +
    `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\n\r\n`;
  const tail = `\r\n--${boundary}--\r\n`;
  const { size } = await stat(file);
  const pieces = async function* (): AsyncGenerator<Uint8Array | string> {
    yield head;
    // What is appended meanwhile is not a part of it.
    if (size > 0) yield* createReadStream(file, { end: size - 1 });
    yield tail;
  };
  return {
    headers: {
      "content-type": `multipart/form-data; boundary=${boundary}`,
      "content-length": String(head.length + size + tail.length),
    },
    body: () => Readable.from(pieces()),
  };
}
