import { mkdir, open, readFile, rename } from "node:fs/promises";
import path from "node:path";
import type { Logger } from "pino";
import { replaceFile } from "../paths/replace-file.ts";
import { EMPTY_STATE, savedStateSchema, type SavedState } from "./saved-state.ts";

const FILE_NAME = "models.json";

/** The saved state in its file. Only one instance may have a file: it keeps the truth in memory and writes it out. */
export class StateFile {
  readonly #path: string;
  #current: SavedState;
  #lastWrite: Promise<void> = Promise.resolve();

  private constructor(file: string, state: SavedState) {
    this.#path = file;
    this.#current = state;
  }

  /** Reads the state of a cache folder. A damaged file is put aside, with a warning, never overwritten. */
  static async open(folder: string, logger: Pick<Logger, "warn">): Promise<StateFile> {
    const file = path.join(folder, FILE_NAME);
    let text: string;
    try {
      text = await readFile(file, "utf8");
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") {
        return new StateFile(file, EMPTY_STATE);
      }
      throw error;
    }
    try {
      return new StateFile(file, savedStateSchema.parse(JSON.parse(text)));
    } catch (error) {
      const aside = `${file}.damaged`;
      await rename(file, aside);
      logger.warn({ err: error, file: aside }, "The list of own models is damaged and has been put aside");
      return new StateFile(file, EMPTY_STATE);
    }
  }

  get current(): SavedState {
    return this.#current;
  }

  /** Changes the state in memory at once and resolves when it is on disk. Changes are written in order. */
  async update(change: (state: SavedState) => SavedState): Promise<void> {
    this.#current = change(this.#current);
    const write = this.#lastWrite.then(async () => await this.#write());
    this.#lastWrite = write.catch(() => undefined);
    await write;
  }

  /** Whole or not at all: the new text is on disk under another name before it takes the place of the old one. */
  async #write(): Promise<void> {
    await mkdir(path.dirname(this.#path), { recursive: true });
    const next = `${this.#path}.next`;
    const file = await open(next, "w", 0o600);
    try {
      await file.writeFile(`${JSON.stringify(this.#current, undefined, 2)}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await replaceFile(next, this.#path);
  }
}
