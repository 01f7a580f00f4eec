import { createHash, randomUUID } from "node:crypto";
import { createReadStream, createWriteStream, type Stats } from "node:fs";
import { open, realpath, rename, rm, stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
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
   * Refuses a file that cannot be written, or that would be lost, before there is anything to write.
   * @param input the file of requests
   * @param earlier the output of the same batch, if it is there: a file with just this may be written again
   * @param force whether any other file may be replaced
   * @throws CliError
   */
  async check({
    input,
    earlier,
    force,
  }: {
    readonly input?: string;
    readonly earlier?: Pieces | undefined;
    readonly force: boolean;
  }): Promise<void> {
    const existing = await statOf(this.path);
    if (existing && !existing.isFile())
      throw usageError(`${this.path} is not a file; leave -o out to print the answers.`);
    if (input !== undefined && existing && (await realpath(input)) === (await realpath(this.path)))
      throw usageError(`${this.path} is the file of requests; name another one for the answers.`);
    if (existing && existing.size > 0 && !force) {
      const isTheSame =
        earlier !== undefined && (await digestOf(createReadStream(this.path))) === (await digestOf(earlier));
      if (!isTheSame)
        throw usageError(`${this.path} exists already; name another file, or replace it with --force.`);
    }
    try {
      await (await open(this.#part, "w")).close();
      await rm(this.#part);
    } catch (error) {
      throw cannotWrite(error);
    }
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

function cannotWrite(error: unknown): CliError {
  return new CliError(
    EXIT.error,
    "output_failed",
    `The file cannot be written: ${toError(error).message}`,
    error,
  );
}
