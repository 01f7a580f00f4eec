import { z } from "zod";
import { existsSync, readFileSync, statSync } from "node:fs";
import { open } from "node:fs/promises";
import path from "node:path";
import type { Logger } from "pino";
import { exhaustedResource, isDiskFull, isSystemError, ServiceError } from "../../errors/service-error.ts";
import { removeFile, replaceFile, syncFolder, writeRefusal } from "../../files/file-operations.ts";
import { FolderLock } from "../../files/locks.ts";
import { freeName } from "../names/name-rules.ts";

/**
 * Saved state of the models service. Models are in lists instead of objects keyed by name, because a model may be named
 * `__proto__`.
 */
export const savedStateSchema = z.object({
  version: z.literal(1),
  /** Default model that a user has chosen at run time. */
  defaultAlias: z.string().optional(),
  /** Files that users have loaded by path. */
  files: z.array(z.object({ alias: z.string(), path: z.string(), projector: z.string().optional() })),
  /** Modelfiles as written; their relative paths start at `baseFolder`. */
  definitions: z.array(
    z.object({ alias: z.string(), modelfile: z.string(), baseFolder: z.string().optional() }),
  ),
});
export type SavedState = z.infer<typeof savedStateSchema>;

const EMPTY_STATE: SavedState = { version: 1, files: [], definitions: [] };

const FILE_NAME = "models.json";
const NO_FILE = "";

/**
 * The file of the saved state, which several daemons may share. Changes apply to the file's current content, under the
 * folder's lock.
 */
export class StateFile {
  readonly #path: string;
  readonly #lock: FolderLock;
  readonly #logger: Pick<Logger, "warn">;
  #current: SavedState = EMPTY_STATE;
  /** Version of the file that `#current` was read from. */
  #version = NO_FILE;

  private constructor(folder: string, logger: Pick<Logger, "warn">) {
    this.#path = path.join(folder, FILE_NAME);
    this.#lock = new FolderLock(folder);
    this.#logger = logger;
  }

  /** Path of a new state file before it replaces the old one. */
  get #next(): string {
    return `${this.#path}.next`;
  }

  /**
   * Reads the state in a cache folder. A damaged file is renamed with a warning, never overwritten. Throws
   * `internal_error` if the folder cannot be used.
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
      await state.#lock.run(async () => await state.#refreshOrRenameDamaged());
    }
    await state.#removeLeftover();
    return state;
  }

  /** Removes the temporary file of a killed writer. */
  async #removeLeftover(): Promise<void> {
    if (!existsSync(this.#next)) return;
    try {
      await this.#lock.run(async () => await removeFile(this.#next));
    } catch (error) {
      this.#logger.warn(
        { err: error, file: this.#next },
        "The temporary file of a killed process cannot be removed",
      );
    }
  }

  /** The current state, or the last known one if the file cannot be read. */
  get current(): SavedState {
    try {
      this.#refresh();
    } catch {
      // Writes are atomic, so a damaged file was edited by hand; the next change or start renames it.
    }
    return this.#current;
  }

  /**
   * Changes the state; resolves when it is durably on disk. A change that returns its argument writes nothing. Throws
   * the errors of the change, `model_busy`, `insufficient_disk` or `cache_not_writable`, and leaves the state unchanged
   * then.
   */
  async update(change: (state: SavedState) => SavedState): Promise<void> {
    try {
      await this.#lock.run(async () => {
        await this.#refreshOrRenameDamaged();
        const next = change(this.#current);
        if (next !== this.#current) await this.#replace(next);
      });
    } catch (error) {
      throw error instanceof ServiceError ? error : unwritable(this.#path, error);
    }
  }

  /** Replaces the file atomically: the new content is on disk under another name before it is renamed. */
  async #replace(state: SavedState): Promise<void> {
    // Under the lock, one temporary name suffices; a killed writer's file is replaced.
    const next = this.#next;
    try {
      await removeFile(next);
      {
        await using file = await open(next, "wx", 0o600);
        await file.writeFile(`${JSON.stringify(state, undefined, 2)}\n`);
        const time = laterThan(this.#path);
        await file.utimes(time, time);
        await file.sync();
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

  /** Reads the file if it has changed since it was last read or written. */
  #refresh(): void {
    const version = versionOf(this.#path);
    if (version === this.#version) return;
    this.#current =
      version === NO_FILE
        ? EMPTY_STATE
        : savedStateSchema.parse(JSON.parse(readFileSync(this.#path, "utf8")));
    this.#version = version;
  }

  /** Reads the file. A damaged one is renamed, and the last known state is written in its place. */
  async #refreshOrRenameDamaged(): Promise<void> {
    try {
      this.#refresh();
    } catch (error) {
      if (isSystemError(error)) throw error;
      const renamed = freeName(`${this.#path}.damaged`, existsSync);
      await replaceFile(this.#path, renamed);
      this.#version = NO_FILE;
      this.#logger.warn({ err: error, file: renamed }, "The list of models is damaged and has been renamed");
      if (this.#current !== EMPTY_STATE) await this.#replace(this.#current);
    }
  }
}

/** Version of a file, which changes with each write: writes create a new file with a later time. */
function versionOf(file: string): string {
  try {
    const { ino, mtimeNs, size } = statSync(file, { bigint: true });
    return `${ino}:${mtimeNs}:${size}`;
  } catch (error) {
    if (isSystemError(error) && error.code === "ENOENT") return NO_FILE;
    throw error;
  }
}

/**
 * Returns the current time, or a time just after the file's: clocks are coarse and may be set back, and inode numbers
 * are reused.
 */
function laterThan(file: string): Date {
  const { mtimeMs = 0 } = statSync(file, { throwIfNoEntry: false }) ?? {};
  return new Date(Math.max(Date.now(), Math.floor(mtimeMs) + 1));
}

function unwritable(file: string, cause: unknown): ServiceError {
  const folder = path.dirname(file);
  const reason = writeRefusal(cause);
  if (reason === undefined) return ServiceError.from(cause);
  const code = isDiskFull(cause)
    ? "insufficient_disk"
    : exhaustedResource(cause) === undefined
      ? "cache_not_writable"
      : "resources_exhausted";
  return new ServiceError(code, `Nothing can be saved in the cache folder ${folder}: ${reason}.`, { cause });
}
