import { readFileSync, renameSync, statSync, type PathLike } from "node:fs";
import { mkdir, open, rename, rm } from "node:fs/promises";
import path from "node:path";
import type { Logger } from "pino";
import { ServiceError } from "../../errors/service-error.ts";
import { replaceFile } from "../../files/replace-file.ts";
import { EMPTY_STATE, savedStateSchema, type SavedState } from "./saved-state.ts";

const FILE_NAME = "models.json";
const NO_FILE = "";
/** Another daemon would have to write as often within as many of our writes: then something else is wrong. */
const MAX_ATTEMPTS = 100;

/**
 * The saved state in its file, which several daemons may share: what one has written the others see. A change is
 * made to what the file says at that moment, never to what it said at the start.
 */
export class StateFile {
  readonly #path: string;
  #current: SavedState = EMPTY_STATE;
  /** Of the file that holds the current state. */
  #version = NO_FILE;
  #lastWrite: Promise<void> = Promise.resolve();

  private constructor(file: string) {
    this.#path = file;
  }

  /**
   * Reads the state of a cache folder. A damaged file is put aside, with a warning, never overwritten. Throws
   * `internal_error` when the folder cannot be used.
   */
  static async open(folder: string, logger: Pick<Logger, "warn">): Promise<StateFile> {
    const state = new StateFile(path.join(folder, FILE_NAME));
    try {
      state.#refresh();
    } catch (error) {
      if (isSystemError(error)) {
        throw new ServiceError(
          "internal_error",
          `The cache folder ${folder} cannot be used: ${error.message}.`,
          {
            cause: error,
          },
        );
      }
      const aside = `${state.#path}.damaged`;
      await rename(state.#path, aside);
      logger.warn({ err: error, file: aside }, "The list of own models is damaged and has been put aside");
    }
    return state;
  }

  /** What the file says now; what it said last while it cannot be read. */
  get current(): SavedState {
    try {
      this.#refresh();
    } catch {
      // Nobody writes it in part: somebody has edited it by hand, and the next start puts it aside.
    }
    return this.#current;
  }

  /**
   * Changes the state; resolves when it is on disk. Changes are made in order. Throws `insufficient_disk`, or
   * `internal_error` when the folder cannot be written to; then nothing has changed.
   */
  async update(change: (state: SavedState) => SavedState): Promise<void> {
    const write = this.#lastWrite.then(async () => await this.#change(change));
    this.#lastWrite = write.catch(() => undefined);
    await write;
  }

  async #change(change: (state: SavedState) => SavedState): Promise<void> {
    try {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        this.#refresh();
        if (await this.#replace(change(this.#current))) return;
      }
    } catch (error) {
      throw unwritable(this.#path, error);
    }
    throw new ServiceError("internal_error", `${this.#path} is being changed by others all the time.`);
  }

  /**
   * Whole or not at all: the new text is on disk under another name before it takes the place of the old one.
   * @returns false when another daemon has written since
   */
  async #replace(state: SavedState): Promise<boolean> {
    const before = this.#version;
    await mkdir(path.dirname(this.#path), { recursive: true });
    const next = `${this.#path}.${crypto.randomUUID()}.next`;
    try {
      const file = await open(next, "wx", 0o600);
      try {
        await file.writeFile(`${JSON.stringify(state, undefined, 2)}\n`);
        await file.sync();
      } finally {
        await file.close();
      }
      const version = versionOf(next);
      if (versionOf(this.#path) !== before) return false;
      await replaceFile(next, this.#path, { rename: renameNow });
      this.#current = state;
      this.#version = version;
      return true;
    } finally {
      await rm(next, { force: true });
    }
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
}

/** Leaves others no time between the last look at the file and its replacement. */
async function renameNow(from: PathLike, to: PathLike): Promise<void> {
  renameSync(from, to);
}

/** Differs for each file that has had this name: each write makes a new one. */
function versionOf(file: string): string {
  try {
    const { ino, mtimeNs, size } = statSync(file, { bigint: true });
    return `${ino}:${mtimeNs}:${size}`;
  } catch (error) {
    if (isSystemError(error) && error.code === "ENOENT") return NO_FILE;
    throw error;
  }
}

function unwritable(file: string, cause: unknown): ServiceError {
  const folder = path.dirname(file);
  if (!isSystemError(cause)) {
    return new ServiceError("internal_error", `${file} is damaged; the next start puts it aside.`, { cause });
  }
  if (cause.code === "ENOSPC" || cause.code === "EDQUOT") {
    return new ServiceError("insufficient_disk", `The disk is full: nothing can be saved in ${folder}.`, {
      cause,
    });
  }
  return new ServiceError(
    "internal_error",
    `Nothing can be saved in the cache folder ${folder}: ${cause.message}.`,
    { cause },
  );
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && "code" in error && typeof error.code === "string";
}
