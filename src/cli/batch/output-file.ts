import { createHash, randomUUID } from "node:crypto";
import { createReadStream, createWriteStream, type Stats } from "node:fs";
import { open, realpath, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { codeOrReason } from "../../errors/reason-of.ts";
import { toError } from "../../errors/to-error.ts";
import { CliError, usageError } from "../cli-error.ts";
import { EXIT } from "../exit-codes.ts";

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
