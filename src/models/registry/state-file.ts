import { z } from "zod";
import { readFileSync, statSync } from "node:fs";
import { open } from "node:fs/promises";
import path from "node:path";
import type { Logger } from "pino";
import { exhaustedResource, isSystemError } from "../../errors/exhausted-resource.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { removeFile } from "../../files/remove-file.ts";
import { FolderLock } from "../../files/folder-lock.ts";
import { listNames } from "../../files/list-names.ts";
import { replaceFile } from "../../files/replace-file.ts";
import { writeRefusal } from "../../files/write-refusal.ts";
import { syncFolder } from "../../files/sync-folder.ts";

/**
 * What the models layer remembers from one start to the next, beside the files themselves. Lists, not objects keyed
 * by name: a model may be called `__proto__`.
 */
export const savedStateSchema = z.object({
  /** Version of this layout. */
  version: z.literal(1),
  /** Chosen at run time. */
  defaultAlias: z.string().optional(),
  /** The user's own files, registered by loading them by path. */
  files: z.array(z.object({ alias: z.string(), path: z.string(), projector: z.string().optional() })),
  /** Modelfiles as they were written; relative paths in them count from the folder. */
  definitions: z.array(
    z.object({ alias: z.string(), modelfile: z.string(), baseFolder: z.string().optional() }),
  ),
});
export type SavedState = z.infer<typeof savedStateSchema>;

export const EMPTY_STATE: SavedState = { version: 1, files: [], definitions: [] };

const FILE_NAME = "models.json";
const NO_FILE = "";
/** A state that never got its name; earlier versions made several. */
const LEFTOVER = /^models\.json\.(?:[0-9a-f-]+\.)?next$/;

/**
 * The saved state in its file, which several daemons may share: what one has written the others see. A change is
 * made under the folder's lock, to what the file says at that moment, never to what it said at the start.
 */
export class StateFile {
  readonly #path: string;
  readonly #lock: FolderLock;
  readonly #logger: Pick<Logger, "warn">;
  #current: SavedState = EMPTY_STATE;
  /** Of the file that holds the current state. */
  #version = NO_FILE;

  private constructor(folder: string, logger: Pick<Logger, "warn">) {
    this.#path = path.join(folder, FILE_NAME);
    this.#lock = new FolderLock(folder);
    this.#logger = logger;
  }

  /**
   * Reads the state of a cache folder. A damaged file is put aside, with a warning, never overwritten. Throws
   * `internal_error` when the folder cannot be used.
   */
  static async open(folder: string, logger: Pick<Logger, "warn">): Promise<StateFile> {
    const state = new StateFile(folder, logger);
    try {
      state.#refresh();
    } catch (error) {
      if (isSystemError(error)) {
        throw new ServiceError(
          "internal_error",
          `The cache folder ${folder} cannot be used: ${error.message}.`,
          { cause: error },
        );
      }
      await state.#lock.run(async () => await state.#refreshOrPutAside());
    }
    await state.#removeLeftovers();
    return state;
  }

  /** Removes what writers have left that were killed. */
  async #removeLeftovers(): Promise<void> {
    const folder = path.dirname(this.#path);
    const leftovers = (await listNames(folder)).filter((name) => LEFTOVER.test(name));
    if (leftovers.length === 0) return;
    try {
      await this.#lock.run(async () => {
        for (const name of leftovers) await removeFile(path.join(folder, name));
      });
    } catch (error) {
      this.#logger.warn({ err: error, folder }, "What a killed process has left cannot be removed");
    }
  }

  /** What the file says now; what it said last while it cannot be read. */
  get current(): SavedState {
    try {
      this.#refresh();
    } catch {
      // Nobody writes it in part: somebody has edited it by hand, and the next change or start puts it aside.
    }
    return this.#current;
  }

  /**
   * Changes the state; resolves when it is on disk and outlives a power cut. A change that returns what it was given
   * writes nothing. Throws what the change throws, `model_busy`, `insufficient_disk`, or `cache_not_writable` when
   * the folder is closed to it; then nothing has changed.
   */
  async update(change: (state: SavedState) => SavedState): Promise<void> {
    try {
      await this.#lock.run(async () => {
        await this.#refreshOrPutAside();
        const next = change(this.#current);
        if (next !== this.#current) await this.#replace(next);
      });
    } catch (error) {
      throw error instanceof ServiceError ? error : unwritable(this.#path, error);
    }
  }

  /** Whole or not at all: the new text is on disk under another name before it takes the place of the old one. */
  async #replace(state: SavedState): Promise<void> {
    // One name is enough under the lock; what a killed writer has left goes with the next change.
    const next = `${this.#path}.next`;
    try {
      await removeFile(next);
      const file = await open(next, "wx", 0o600);
      try {
        await file.writeFile(`${JSON.stringify(state, undefined, 2)}\n`);
        const time = laterThan(this.#path);
        await file.utimes(time, time);
        await file.sync();
      } finally {
        await file.close();
      }
      const version = versionOf(next);
      await replaceFile(next, this.#path);
      this.#current = state;
      this.#version = version;
    } catch (error) {
      await removeFile(next);
      throw error;
    }
    await syncFolder(path.dirname(this.#path));
  }

  /** Reads the file if it is another one than that which was read or written last. */
  #refresh(): void {
    const version = versionOf(this.#path);
    if (version === this.#version) return;
    this.#current =
      version === NO_FILE
        ? EMPTY_STATE
        : savedStateSchema.parse(JSON.parse(readFileSync(this.#path, "utf8")));
    this.#version = version;
  }

  /** Puts a damaged file aside; what was read last holds on, and is what the next change is made to. */
  async #refreshOrPutAside(): Promise<void> {
    try {
      this.#refresh();
    } catch (error) {
      if (isSystemError(error)) throw error;
      const aside = freeName(`${this.#path}.damaged`);
      await replaceFile(this.#path, aside);
      this.#version = NO_FILE;
      this.#logger.warn(
        { err: error, file: aside },
        "The list of own models is damaged and has been put aside",
      );
      if (this.#current !== EMPTY_STATE) await this.#replace(this.#current);
    }
  }
}

/** Differs for each file that has had this name: each write makes a new one, with a later time. */
function versionOf(file: string): string {
  try {
    const { ino, mtimeNs, size } = statSync(file, { bigint: true });
    return `${ino}:${mtimeNs}:${size}`;
  } catch (error) {
    if (isSystemError(error) && error.code === "ENOENT") return NO_FILE;
    throw error;
  }
}

/** Now, or just after the file's time: clocks are coarse and may be set back, and numbers of files come again. */
function laterThan(file: string): Date {
  const { mtimeMs = 0 } = statSync(file, { throwIfNoEntry: false }) ?? {};
  return new Date(Math.max(Date.now(), Math.floor(mtimeMs) + 1));
}

function freeName(file: string): string {
  for (let number = 1; ; number++) {
    const name = number === 1 ? file : `${file}-${number}`;
    if (statSync(name, { throwIfNoEntry: false }) === undefined) return name;
  }
}

function unwritable(file: string, cause: unknown): ServiceError {
  const folder = path.dirname(file);
  const why = writeRefusal(cause);
  if (why === undefined) return ServiceError.from(cause);
  const isFull = isSystemError(cause) && (cause.code === "ENOSPC" || cause.code === "EDQUOT");
  const code = isFull
    ? "insufficient_disk"
    : exhaustedResource(cause) === undefined
      ? "cache_not_writable"
      : "resources_exhausted";
  return new ServiceError(code, `Nothing can be saved in the cache folder ${folder}: ${why}.`, { cause });
}
