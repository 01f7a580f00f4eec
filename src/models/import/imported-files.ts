import { createHash } from "node:crypto";
import { realpath, rmdir, stat } from "node:fs/promises";
import path from "node:path";
import { mapSteps } from "../../async/map-steps.ts";
import { removeFile } from "../../files/remove-file.ts";
import type { FoundModel } from "../folders/found-model.ts";
import { shardFiles } from "../names/shards.ts";
import type { Placement } from "./import-step.ts";
import { type FileSystem, type PlacedFile, placeFile } from "./place-file.ts";

/** Enough of a SHA-256 to tell folders apart. */
const FOLDER_DIGITS = 16;

/** The files of a model, as its Modelfile names them. */
export interface PlacedModel {
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
  ): AsyncGenerator<{ copiedBytes: number; totalBytes: number }, PlacedModel, void> {
    const all = [...files, ...(projector === undefined ? [] : [projector]), ...adapters];
    const sizes = await Promise.all(all.map(async (file) => (await stat(file)).size));
    const totalBytes = sizes.reduce((sum, size) => sum + size, 0);
    const placed = new Map<string, PlacedFile>();
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

function newOnes(placed: ReadonlyMap<string, PlacedFile>): string[] {
  return [...placed.values()].filter(({ isNew }) => isNew).map(({ path: file }) => file);
}
