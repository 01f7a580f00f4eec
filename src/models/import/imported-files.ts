import { createHash, randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, link, mkdir, open, realpath, rmdir, stat, utimes } from "node:fs/promises";
import path from "node:path";
import { isDiskFull, isSystemError, ServiceError, throwExhaustion } from "../../errors/service-error.ts";
import { removeFile, replaceFile, writeRefusal } from "../../files/file-operations.ts";
import type { FoundModel } from "../folders/found-model.ts";
import { shardFiles } from "../names/model-file-names.ts";
import { mapSteps } from "../progress-steps.ts";

/** Enough of a SHA-256 to tell folders apart. */
const FOLDER_DIGITS = 16;

/** The files of a model, as its Modelfile names them. */
export interface LinkedModel {
  readonly model: string;
  readonly projector: string | undefined;
  readonly adapters: readonly string[];
  /** The worst of its files. */
  readonly placement: Placement;
  readonly sizeBytes: number;
  /** Where each file came from, by where it is now. */
  readonly origins: ReadonlyMap<string, string>;
  /** Those that were not there before. */
  readonly added: readonly string[];
}

/** From what takes no space and stays, to what may vanish. */
const PLACEMENTS: readonly Placement[] = ["cloned", "linked", "copied", "in place"];

/**
 * The files of imported models, in a folder of the cache: one folder for each that they came from, in which they keep their
 * names, as shards must.
 */
export class ImportedFiles {
  readonly folder: string;
  readonly #isUsed: (path: string) => boolean;

  readonly #disk: FileSystem | undefined;

  /** @param isUsed whether a model names the file at this path; of shards, the first is named */
  constructor(folder: string, isUsed: (path: string) => boolean, disk?: FileSystem) {
    this.folder = path.resolve(folder);
    this.#isUsed = isUsed;
    this.#disk = disk;
  }

  /** Has the files of a model here, or where they are; yields how many bytes of all have been copied. */
  async *place(
    { files, projector, adapters }: FoundModel,
    wantsCopy: boolean,
    signal: AbortSignal,
  ): AsyncGenerator<{ copiedBytes: number; totalBytes: number }, LinkedModel, void> {
    const all = [...files, ...(projector === undefined ? [] : [projector]), ...adapters];
    const sizes = await Promise.all(all.map(async (file) => (await stat(file)).size));
    const totalBytes = sizes.reduce((sum, size) => sum + size, 0);
    const placed = new Map<string, LinkedFile>();
    let copiedBytes = 0;
    let isWhole = false;
    try {
      for (const file of all) {
        const steps = placeFile(await realpath(file), this.#targetOf(file), wantsCopy, signal, this.#disk);
        const result = yield* mapSteps(steps, (bytes) => ({
          copiedBytes: (copiedBytes += bytes),
          totalBytes,
        }));
        // In place, shards are found by the names that they have in their folder, which may be links.
        placed.set(file, result.placement === "in place" ? { ...result, path: file } : result);
      }
      isWhole = true;
    } finally {
      // Also when the client has left.
      if (!isWhole) await this.remove(newOnes(placed));
    }
    // Shards are looked for beside the first one.
    const isSplit = new Set(files.map((file) => path.dirname(placed.get(file)?.path ?? file))).size > 1;
    const pathOf = (file: string): string =>
      isSplit && files.includes(file) ? file : (placed.get(file)?.path ?? file);
    const worst = [...placed.values()].map(({ placement }) => PLACEMENTS.indexOf(placement));
    return {
      model: pathOf(files[0]),
      projector: projector && pathOf(projector),
      adapters: adapters.map(pathOf),
      placement: PLACEMENTS[Math.max(...worst)] ?? "in place",
      sizeBytes: totalBytes,
      origins: new Map([...placed].map(([file, { path: now }]) => [now, file])),
      added: newOnes(placed),
    };
  }

  /** Removes those of the files that are in this folder and that no model needs; of shards, the first is enough. */
  async remove(files: readonly string[]): Promise<void> {
    const own = files.map((file) => path.resolve(file)).filter((file) => this.#isOwn(file));
    for (const file of own.flatMap(shardFiles)) {
      if (this.#isUsed(shardFiles(file)[0] ?? file)) continue;
      await removeFile(file);
      // The folder goes with its last file.
      await rmdir(path.dirname(file)).catch(() => {});
    }
  }

  /** Whether it is a file in one of the folders of this folder. */
  #isOwn(file: string): boolean {
    const parts = path.relative(this.folder, file).split(path.sep);
    return parts.length === 2 && !parts.includes("..");
  }

  #targetOf(file: string): string {
    const from = createHash("sha256").update(path.dirname(file)).digest("hex").slice(0, FOLDER_DIGITS);
    const name = path.basename(file);
    return path.join(this.folder, from, /\.gguf$/i.test(name) ? name : `${name}.gguf`);
  }
}

function newOnes(placed: ReadonlyMap<string, LinkedFile>): string[] {
  return [...placed.values()].filter(({ isNew }) => isNew).map(({ path: file }) => file);
}

export interface LinkedFile {
  readonly placement: Placement;
  /** Where it is now. */
  readonly path: string;
  /** It was not there before. */
  readonly isNew: boolean;
}

/** How the system has a file at a second path without copying it; rejects where it cannot. */
export interface FileSystem {
  readonly clone: (from: string, to: string) => Promise<void>;
  /** Windows and some file systems refuse it, as Linux does for files of others. */
  readonly link: (from: string, to: string) => Promise<void>;
}

const DISK: FileSystem = {
  clone: async (from, to) => {
    await copyFile(from, to, constants.COPYFILE_FICLONE_FORCE | constants.COPYFILE_EXCL);
  },
  link,
};

/** Read and written at once by a copy. */
const PIECE_BYTES = 8 * 1024 * 1024;

/**
 * Has a file at another path without copying it, where the file system can; otherwise copies it, if that is wanted, or
 * leaves it where it is. Yields the bytes that each step of a copy has written.
 * @param source its real path
 * @throws ServiceError insufficient_disk or cache_not_writable when a copy cannot be written
 */
export async function* placeFile(
  source: string,
  target: string,
  wantsCopy: boolean,
  signal: AbortSignal,
  disk: FileSystem = DISK,
): AsyncGenerator<number, LinkedFile, void> {
  const known = await placementOf(source, target);
  if (known) return { placement: known, path: target, isNew: false };
  const placed = (placement: Placement): LinkedFile => ({ placement, path: target, isNew: true });
  const partial = `${target}.${randomUUID()}.partial`;
  try {
    await mkdir(path.dirname(target), { recursive: true, mode: 0o700 });
    if (await succeeds(disk.clone(source, partial))) {
      await finish(source, partial, target);
      return placed("cloned");
    }
    if (await succeeds(disk.link(source, partial))) {
      await replaceFile(partial, target);
      return placed("linked");
    }
    if (!wantsCopy) return { placement: "in place", path: source, isNew: false };
    yield* copyPieces(source, partial, signal);
    await finish(source, partial, target);
    return placed("copied");
  } catch (error) {
    if (error instanceof ServiceError || !isSystemError(error)) throw error;
    throw unwritable(path.dirname(target), error);
  } finally {
    await removeFile(partial);
  }
}

/** How a file is had already; a clone cannot be told from a copy. */
async function placementOf(source: string, target: string): Promise<Placement | undefined> {
  const [from, to] = await Promise.all([stat(source), stat(target).catch(() => undefined)]);
  if (!from.isFile()) throw new ServiceError("path_not_allowed", `${source} is not a regular file.`);
  if (!to?.isFile()) return undefined;
  if (from.dev === to.dev && from.ino === to.ino) return "linked";
  return from.size === to.size && Math.abs(from.mtimeMs - to.mtimeMs) < 2 ? "copied" : undefined;
}

async function succeeds(action: Promise<void>): Promise<boolean> {
  try {
    await action;
    return true;
  } catch (error) {
    throwExhaustion(error);
    return false;
  }
}

async function* copyPieces(
  source: string,
  partial: string,
  signal: AbortSignal,
): AsyncGenerator<number, void> {
  await using from = await open(source, "r");
  await using to = await open(partial, "wx", 0o600);
  const buffer = Buffer.allocUnsafe(PIECE_BYTES);
  for (;;) {
    signal.throwIfAborted();
    const { bytesRead } = await from.read(buffer, 0, buffer.length);
    if (bytesRead === 0) break;
    await to.writeFile(buffer.subarray(0, bytesRead));
    yield bytesRead;
  }
  await to.sync();
}

/** Gives a copy the time of its original, by which the next import knows it, and its name. */
async function finish(source: string, partial: string, target: string): Promise<void> {
  const { atime, mtime } = await stat(source);
  await utimes(partial, atime, mtime);
  await replaceFile(partial, target);
}

function unwritable(folder: string, cause: unknown): ServiceError {
  return new ServiceError(
    isDiskFull(cause) ? "insufficient_disk" : "cache_not_writable",
    `The model cannot be put into ${folder}: ${writeRefusal(cause) ?? "the system refuses it"}.`,
    { cause },
  );
}

export interface ImportRequest {
  /** A program whose folder is known, or the absolute path of a folder. */
  readonly from: string;
  /** Only these, by the names that they have there. */
  readonly names?: readonly string[] | undefined;
  /** Copy files that cannot be had without copying, instead of using them where they are. */
  readonly copy: boolean;
}

export type ImportStep =
  | { readonly status: "reading"; readonly folder: string; readonly models: number }
  | {
      readonly status: "copying";
      readonly name: string;
      readonly copiedBytes: number;
      readonly totalBytes: number;
    }
  /** present: an earlier import has brought it, and nothing has changed since. */
  | {
      readonly status: "imported" | "updated" | "present";
      readonly name: string;
      readonly alias: string;
      readonly placement: Placement;
      readonly sizeBytes: number;
      readonly notes: readonly string[];
    }
  | { readonly status: "skipped"; readonly name: string; readonly reason: string };

/**
 * How a file of another program is had: as a clone that shares its blocks or as a second name of it (both take no space and
 * outlive its program), as a copy, or where it is.
 */
type Placement = "cloned" | "linked" | "copied" | "in place";
