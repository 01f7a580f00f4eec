import { createHash, randomUUID } from "node:crypto";
import { createReadStream, createWriteStream, type Stats } from "node:fs";
import { open, realpath, rename, rm, stat } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { z } from "zod";
import { codeOrReason, isSystemError, toError } from "../../errors/service-error.ts";
import { tryJson } from "../../json/json-values.ts";
import { CliError, EXIT, usageError, writeError } from "../cli-error.ts";

const requestLineSchema = z.looseObject({ url: z.string() });
/** Requests for Anthropic's API: a single one, or all in one body. */
const anthropicSchema = z.union([
  z.looseObject({ url: z.literal("/v1/messages") }),
  z.looseObject({ params: z.looseObject({ messages: z.array(z.unknown()) }) }),
  z.looseObject({ requests: z.array(z.unknown()) }),
]);

export interface BatchFile {
  readonly path: string;
  /** SHA-256 of the content. An earlier batch of the same content is found by it. */
  readonly sha256: string;
  /** URL path of the first request: "/v1/chat/completions", for example. */
  readonly endpoint: string;
}

/** Reads endpoint and digest of a file of requests. @throws CliError */
export async function readBatchFile(file: string): Promise<BatchFile> {
  try {
    const first = await readFirstLine(file);
    if (anthropicSchema.safeParse(first).success) throw usageError(anthropicAdvice(file));
    const endpoint = requestLineSchema.safeParse(first).data?.url;
    const hash = createHash("sha256");
    for await (const chunk of createReadStream(file)) hash.update(chunk);
    if (endpoint !== undefined) return { path: file, sha256: hash.digest("hex"), endpoint };
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

function anthropicAdvice(file: string): string {
  return `${file} has requests for Anthropic's API: send them as {"requests": [{"custom_id", "params"}, …]} to POST /v1/messages/batches, or with Anthropic's SDK.`;
}

/** The first line that is not blank, as JSON; undefined if there is none. */
async function readFirstLine(file: string): Promise<unknown> {
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

/** Returns a multipart form with the file, which is read while it is sent. */
export async function uploadForm(
  file: string,
): Promise<{ readonly headers: Record<string, string>; readonly body: () => Readable }> {
  const boundary = `daybreak-${randomUUID()}`;
  const name = encodeURIComponent(basename(file));
  const head =
    `--${boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n` +
    `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\n\r\n`;
  const tail = `\r\n--${boundary}--\r\n`;
  const { size } = await stat(file);
  const chunks = async function* (): AsyncGenerator<Uint8Array | string> {
    yield head;
    // The declared length must stay right if the file grows meanwhile.
    if (size > 0) yield* createReadStream(file, { end: size - 1 });
    yield tail;
  };
  return {
    headers: {
      "content-type": `multipart/form-data; boundary=${boundary}`,
      "content-length": String(head.length + size + tail.length),
    },
    body: () => Readable.from(chunks()),
  };
}

type ByteChunks = AsyncIterable<Uint8Array>;

/** Output file of -o, written under a temporary name and renamed when it is complete. */
export class OutputFile {
  readonly path: string;

  readonly #partialFile: string;

  constructor(path: string) {
    this.path = path;
    this.#partialFile = `${path}.${randomUUID()}.part`;
  }

  /**
   * Checks that the file can be written, before anything is sent.
   * @param input the file of requests
   * @throws CliError
   */
  async checkWritable(input?: string): Promise<void> {
    const existing = await statIfExists(this.path);
    if (existing && !existing.isFile())
      throw usageError(`${this.path} is not a file; leave -o out to print the answers.`);
    if (input !== undefined && existing && (await realpath(input)) === (await realpath(this.path)))
      throw usageError(`${this.path} is the file of requests; name another one for the answers.`);
    try {
      await (await open(this.#partialFile, "w")).close();
      await rm(this.#partialFile);
    } catch (error) {
      throw usageError(describeWriteProblem(this.path, error));
    }
  }

  /**
   * Refuses to overwrite a file with other content.
   * @param previousOutput output of the same batch, if any: a file with exactly this content may be written again
   * @param force true to replace any other file
   * @throws CliError
   */
  async checkOverwrite({
    previousOutput,
    force,
  }: {
    readonly previousOutput?: ByteChunks | undefined;
    readonly force: boolean;
  }): Promise<void> {
    const existing = await statIfExists(this.path);
    if (!existing || existing.size === 0 || force) return;
    const isUnchanged =
      previousOutput !== undefined &&
      (await digestOf(createReadStream(this.path))) === (await digestOf(previousOutput));
    if (!isUnchanged)
      throw usageError(`${this.path} exists already; name another file, or replace it with --force.`);
  }

  async write(chunks: ByteChunks, signal: AbortSignal): Promise<void> {
    try {
      await pipeline(Readable.from(chunks), createWriteStream(this.#partialFile), { signal });
      await rename(this.#partialFile, this.path);
    } catch (error) {
      await rm(this.#partialFile, { force: true });
      signal.throwIfAborted();
      throw error instanceof CliError ? error : writeError("The file", error);
    }
  }
}

async function statIfExists(path: string): Promise<Stats | undefined> {
  return await stat(path).catch(() => undefined);
}

async function digestOf(chunks: ByteChunks): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of chunks) hash.update(chunk);
  return hash.digest("hex");
}

function describeWriteProblem(path: string, error: unknown): string {
  const folder = dirname(path);
  const code = codeOrReason(error);
  if (code === "ENOENT")
    return `There is no folder ${folder}; make it, or name another file for the answers.`;
  if (code === "ENOTDIR") return `${folder} is not a folder; name another file for the answers.`;
  return `Nothing can be written into the folder ${folder} (${code}); name another file for the answers.`;
}
