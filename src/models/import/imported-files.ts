import { createHash, randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, link, mkdir, open, realpath, rmdir, stat, utimes } from "node:fs/promises";
import path from "node:path";
import { ServiceError, rethrowExhaustion } from "../../errors/service-error.ts";
import { removeFile, replaceFile, toWriteError } from "../../files/file-operations.ts";
import type { FoundModel } from "../folders/found-model.ts";
import { shardFiles } from "../names/model-file-names.ts";
import { mapSteps } from "../progress-steps.ts";

/** Digits of a SHA-256 in the names of folders. */
const FOLDER_DIGITS = 16;

/** Paths of an imported model's files, as in its Modelfile. */
export interface LinkedModel {
  readonly model: string;
  readonly projector: string | undefined;
  readonly adapters: readonly string[];
  /** Placement of the file that is placed worst. */
  readonly placement: Placement;
  readonly sizeBytes: number;
  readonly origins: ReadonlyMap<string, string>;
  readonly added: readonly string[];
}

/** Placements from best to worst: a file in place may be deleted by its program. */
const PLACEMENTS: readonly Placement[] = ["cloned", "linked", "copied", "in place"];

/**
 * Files of imported models in a folder of the cache. Each original folder has its own subfolder, in which files keep
 * their names, because shards need them.
 */
export class ImportedFiles {
  readonly folder: string;
  readonly #isUsed: (path: string) => boolean;

  readonly #disk: FileSystem | undefined;

  /** @param isUsed true if a model's Modelfile or entry names this file; of shards, the first one is named */
  constructor(folder: string, isUsed: (path: string) => boolean, disk?: FileSystem) {
    this.folder = path.resolve(folder);
    this.#isUsed = isUsed;
    this.#disk = disk;
  }

  /** Clones, links or copies a model's files, or leaves them in place; yields the copied bytes of all files. */
  async *link(
    { files, projector, adapters }: FoundModel,
    mayCopy: boolean,
    signal: AbortSignal,
  ): AsyncGenerator<{ copiedBytes: number; totalBytes: number }, LinkedModel, void> {
    const all = [...files, ...(projector === undefined ? [] : [projector]), ...adapters];
    const sizes = await Promise.all(all.map(async (file) => (await stat(file)).size));
    const totalBytes = sizes.reduce((sum, size) => sum + size, 0);
    const linked = new Map<string, LinkedFile>();
    let copiedBytes = 0;
    let isComplete = false;
    try {
      for (const file of all) {
        const steps = linkFile(await realpath(file), this.#targetOf(file), mayCopy, signal, this.#disk);
        const result = yield* mapSteps(steps, (bytes) => ({
          copiedBytes: (copiedBytes += bytes),
          totalBytes,
        }));
        // The path as named, which may be a link, and not the real path: shards are found by their names.
        linked.set(file, result.placement === "in place" ? { ...result, path: file } : result);
      }
      isComplete = true;
    } finally {
      // Also runs if the client leaves.
      if (!isComplete) await this.remove(newPaths(linked));
    }
    // llama.cpp looks for shards in one folder; if they are in several, the original paths are used.
    const isSplit = new Set(files.map((file) => path.dirname(linked.get(file)?.path ?? file))).size > 1;
    const pathOf = (file: string): string =>
      isSplit && files.includes(file) ? file : (linked.get(file)?.path ?? file);
    const worst = [...linked.values()].map(({ placement }) => PLACEMENTS.indexOf(placement));
    return {
      model: pathOf(files[0]),
      projector: projector && pathOf(projector),
      adapters: adapters.map(pathOf),
      placement: PLACEMENTS[Math.max(...worst)] ?? "in place",
      sizeBytes: totalBytes,
      origins: new Map([...linked].map(([file, { path: now }]) => [now, file])),
      added: newPaths(linked),
    };
  }

  /** Deletes those of the files that are in this folder and unused. The first shard stands for all. */
  async remove(files: readonly string[]): Promise<void> {
    const own = files.map((file) => path.resolve(file)).filter((file) => this.#isOwn(file));
    for (const file of own.flatMap(shardFiles)) {
      if (this.#isUsed(shardFiles(file)[0] ?? file)) continue;
      await removeFile(file);
      // Deletes the folder after its last file.
      await rmdir(path.dirname(file)).catch(() => {});
    }
  }

  /** True for a file in a subfolder of this folder. */
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

function newPaths(linked: ReadonlyMap<string, LinkedFile>): string[] {
  return [...linked.values()].filter(({ isNew }) => isNew).map(({ path: file }) => file);
}

export interface LinkedFile {
  readonly placement: Placement;
  /** New path, or the original one of a file in place. */
  readonly path: string;
  readonly isNew: boolean;
}

/** Ways of the file system to have a file at a second path without copying it; they reject if unsupported. */
export interface FileSystem {
  readonly clone: (from: string, to: string) => Promise<void>;
  /** Hard link, which some file systems do not support, and Linux refuses for files of other users. */
  readonly link: (from: string, to: string) => Promise<void>;
}

const SYSTEM: FileSystem = {
  clone: async (from, to) => {
    await copyFile(from, to, constants.COPYFILE_FICLONE_FORCE | constants.COPYFILE_EXCL);
  },
  link,
};

/** Bytes that a copy reads and writes at a time. */
const COPY_CHUNK_BYTES = 8 * 1024 * 1024;

/**
 * Clones or links a file to another path if the file system can; otherwise copies it if allowed, or leaves it in place.
 * Yields the bytes of each copied chunk.
 * @param source real path of the file
 * @throws ServiceError insufficient_disk or cache_not_writable if a copy cannot be written
 */
export async function* linkFile(
  source: string,
  target: string,
  mayCopy: boolean,
  signal: AbortSignal,
  disk: FileSystem = SYSTEM,
): AsyncGenerator<number, LinkedFile, void> {
  const known = await existingPlacement(source, target);
  if (known) return { placement: known, path: target, isNew: false };
  const linked = (placement: Placement): LinkedFile => ({ placement, path: target, isNew: true });
  const partial = `${target}.${randomUUID()}.partial`;
  try {
    await mkdir(path.dirname(target), { recursive: true, mode: 0o700 });
    if (await succeeds(disk.clone(source, partial))) {
      await finish(source, partial, target);
      return linked("cloned");
    }
    if (await succeeds(disk.link(source, partial))) {
      await replaceFile(partial, target);
      return linked("linked");
    }
    if (!mayCopy) return { placement: "in place", path: source, isNew: false };
    yield* copyChunks(source, partial, signal);
    await finish(source, partial, target);
    return linked("copied");
  } catch (error) {
    throw toWriteError(error, `The model cannot be put into ${path.dirname(target)}`);
  } finally {
    await removeFile(partial);
  }
}

/** Returns the placement of a file from an earlier import; a clone looks like a copy. */
async function existingPlacement(source: string, target: string): Promise<Placement | undefined> {
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
    rethrowExhaustion(error);
    return false;
  }
}

async function* copyChunks(
  source: string,
  partial: string,
  signal: AbortSignal,
): AsyncGenerator<number, void> {
  await using from = await open(source, "r");
  await using to = await open(partial, "wx", 0o600);
  const buffer = Buffer.allocUnsafe(COPY_CHUNK_BYTES);
  for (;;) {
    signal.throwIfAborted();
    const { bytesRead } = await from.read(buffer, 0, buffer.length);
    if (bytesRead === 0) break;
    await to.writeFile(buffer.subarray(0, bytesRead));
    yield bytesRead;
  }
  await to.sync();
}

/** Sets the original's time on a copy, by which the next import recognizes it, and renames it. */
async function finish(source: string, partial: string, target: string): Promise<void> {
  const { atime, mtime } = await stat(source);
  await utimes(partial, atime, mtime);
  await replaceFile(partial, target);
}

export interface ImportRequest {
  /** A known program, or the absolute path of a folder. */
  readonly from: string;
  /** Names of the models to import; absent: all. */
  readonly names?: readonly string[] | undefined;
  /** Copies files that cannot be cloned or linked, instead of using them in place. */
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
  /** present: unchanged since an earlier import. */
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
 * Placement of an imported file: a clone that shares its blocks, a hard link (both take no space and survive a deletion
 * by its program), a copy, or the original file.
 */
type Placement = "cloned" | "linked" | "copied" | "in place";
