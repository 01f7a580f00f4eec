import { createHash, randomUUID } from "node:crypto";
import { createReadStream, createWriteStream, type Stats } from "node:fs";
import { open, realpath, rename, rm, stat } from "node:fs/promises";
import nodePathPath, { dirname } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { z } from "zod";
import { codeOrReason } from "../../errors/reason-of.ts";
import { isSystemError } from "../../errors/service-error.ts";
import { toError } from "../../errors/to-error.ts";
import { tryJson } from "../../json/json-values.ts";
import { CliError, EXIT, usageError } from "../cli-error.ts";

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
  const name = encodeURIComponent(nodePathPath.basename(file));
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

type Pieces = AsyncIterable<Uint8Array>;

/** The file that -o names; it gets its name once it is whole. */
export class OutputFile {
  readonly path: string;

  /** No file of anybody else has this name. */
  readonly #part: string;

  constructor(path: string) {
    this.path = path;
    this.#part = `${path}.${randomUUID()}.part`;
  }

  /**
   * Refuses a place where no file can be written, before anything is sent.
   * @param input the file of requests
   * @throws CliError
   */
  async checkPlace(input?: string): Promise<void> {
    const existing = await statOf(this.path);
    if (existing && !existing.isFile())
      throw usageError(`${this.path} is not a file; leave -o out to print the answers.`);
    if (input !== undefined && existing && (await realpath(input)) === (await realpath(this.path)))
      throw usageError(`${this.path} is the file of requests; name another one for the answers.`);
    try {
      await (await open(this.#part, "w")).close();
      await rm(this.#part);
    } catch (error) {
      throw usageError(whyNoPlace(this.path, error));
    }
  }

  /**
   * Refuses a file that would be lost, before there is anything to write.
   * @param earlier the output of the same batch, if it is there: a file with just this may be written again
   * @param force whether any other file may be replaced
   * @throws CliError
   */
  async checkContent({
    earlier,
    force,
  }: {
    readonly earlier?: Pieces | undefined;
    readonly force: boolean;
  }): Promise<void> {
    const existing = await statOf(this.path);
    if (!existing || existing.size === 0 || force) return;
    const isTheSame =
      earlier !== undefined && (await digestOf(createReadStream(this.path))) === (await digestOf(earlier));
    if (!isTheSame)
      throw usageError(`${this.path} exists already; name another file, or replace it with --force.`);
  }

  async write(pieces: Pieces, signal: AbortSignal): Promise<void> {
    try {
      await pipeline(Readable.from(pieces), createWriteStream(this.#part), { signal });
      await rename(this.#part, this.path);
    } catch (error) {
      await rm(this.#part, { force: true });
      signal.throwIfAborted();
      throw error instanceof CliError ? error : cannotWrite(error);
    }
  }
}

async function statOf(path: string): Promise<Stats | undefined> {
  return await stat(path).catch(() => undefined);
}

async function digestOf(pieces: Pieces): Promise<string> {
  const sum = createHash("sha256");
  for await (const piece of pieces) sum.update(piece);
  return sum.digest("hex");
}

function whyNoPlace(path: string, error: unknown): string {
  const folder = dirname(path);
  const code = codeOrReason(error);
  if (code === "ENOENT")
    return `There is no folder ${folder}; make it, or name another file for the answers.`;
  if (code === "ENOTDIR") return `${folder} is not a folder; name another file for the answers.`;
  return `Nothing can be written into the folder ${folder} (${code}); name another file for the answers.`;
}

function cannotWrite(error: unknown): CliError {
  return new CliError(
    EXIT.error,
    "output_failed",
    `The file cannot be written: ${toError(error).message}`,
    error,
  );
}
