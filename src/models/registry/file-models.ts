import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { ErrorCode } from "../../errors/error-codes.ts";
import type { ModelFile } from "./model-file.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { RegistryOptions } from "../models-options.ts";
import type { SavedState } from "./state-file.ts";

import {
  buildRecord,
  type ModelRecord,
  type Projector,
  readProjector,
  usableRecords,
} from "./model-record.ts";

/** Errors of state.update() when it cannot write. */
const UNSAVEABLE: ReadonlySet<ErrorCode> = new Set(["insufficient_disk", "cache_not_writable"]);

type SavedFile = SavedState["files"][number];

/** The user's own files, which were loaded by path. */
export class FileModels {
  readonly #options: RegistryOptions;
  /** Those that could not be saved, because the disk is full or read-only; they are known until the daemon ends. */
  readonly #unsaved = new Map<string, SavedFile>();

  constructor(options: RegistryOptions) {
    this.#options = options;
  }

  has(alias: string): boolean {
    return this.#saved(alias) !== undefined;
  }

  /** All usable models. */
  async list(): Promise<readonly ModelRecord[]> {
    const { state, logger } = this.#options;
    const saved = state.current.files.filter(({ alias }) => !this.#unsaved.has(alias));
    return await usableRecords(
      [...saved, ...this.#unsaved.values()],
      async ({ alias, path: file, projector }) => await this.inspect(alias, file, projector),
      (error, { alias }) =>
        logger.warn({ err: error, model: alias }, "A model's file cannot be used any more"),
    );
  }

  async find(alias: string): Promise<ModelRecord | undefined> {
    const saved = this.#saved(alias);
    return saved && (await this.inspect(alias, saved.path, saved.projector));
  }

  /** The record of a file, without registering it. */
  async inspect(alias: string, file: string, projector: string | undefined): Promise<ModelRecord> {
    const parts = {
      alias,
      source: { kind: "file" },
      path: path.resolve(file),
      projector: projector === undefined ? undefined : path.resolve(projector),
      within: this.#options.config.models.allowed_dirs,
    } as const;
    return await buildRecord(parts, this.#options.inspect);
  }

  /**
   * Registers a record, replacing another file with the same name. Returns a function that undoes this, unless there has
   * been another change.
   * @throws ServiceError model_exists if the name has been taken in the meantime, perhaps by another daemon
   */
  async add(record: ModelRecord): Promise<() => Promise<void>> {
    const { alias } = record;
    const before = this.#inState(alias);
    const saved = toSaved(record);
    if (isDeepStrictEqual(this.#saved(alias), saved)) return async () => {};
    try {
      if (!(await this.#exchange(alias, before, saved))) {
        throw new ServiceError("model_exists", `There is a model "${alias}" already; choose another alias.`);
      }
      this.#unsaved.delete(alias);
    } catch (error) {
      return this.#keepUnsaved(saved, error);
    }
    return async () => void (await this.#exchange(alias, saved, before));
  }

  /** A model can be used even if it cannot be saved, because its file exists. */
  #keepUnsaved(saved: SavedFile, error: unknown): () => Promise<void> {
    if (!(error instanceof ServiceError && UNSAVEABLE.has(error.code))) throw error;
    const { alias } = saved;
    const before = this.#unsaved.get(alias);
    this.#unsaved.set(alias, saved);
    this.#options.logger.warn(
      { model: alias },
      `The model is known until the daemon ends, and then forgotten. ${error.message}`,
    );
    return async () => void (before ? this.#unsaved.set(alias, before) : this.#unsaved.delete(alias));
  }

  /** Registers a record under its name; false if the name has been taken in the meantime. */
  async claim(record: ModelRecord): Promise<boolean> {
    const saved = toSaved(record);
    try {
      return await this.#exchange(record.alias, undefined, saved);
    } catch (error) {
      this.#keepUnsaved(saved, error);
      return true;
    }
  }

  async forget(alias: string): Promise<void> {
    if (this.#unsaved.delete(alias) && !this.#inState(alias)) return;
    await this.#options.state.update((state) => replaced(state, alias, undefined));
  }

  /** A projector named by the user. */
  async projector(file: string): Promise<Projector> {
    const within = this.#options.config.models.allowed_dirs;
    return await readProjector({ path: path.resolve(file), within }, this.#options.inspect);
  }

  /** A draft model named by the user. */
  draft(file: string): ModelFile {
    return { path: path.resolve(file), within: this.#options.config.models.allowed_dirs };
  }

  /** Replaces an entry by another, if it is unchanged and no created model has the name; otherwise does nothing. */
  async #exchange(
    alias: string,
    before: SavedFile | undefined,
    after: SavedFile | undefined,
  ): Promise<boolean> {
    let done = false;
    await this.#options.state.update((state) => {
      const now = state.files.find((file) => file.alias === alias);
      const isMade = after !== undefined && state.definitions.some((other) => other.alias === alias);
      done = isDeepStrictEqual(now, before) && !isMade;
      return done ? replaced(state, alias, after) : state;
    });
    return done;
  }

  #saved(alias: string): SavedFile | undefined {
    return this.#unsaved.get(alias) ?? this.#inState(alias);
  }

  #inState(alias: string): SavedFile | undefined {
    return this.#options.state.current.files.find((file) => file.alias === alias);
  }
}

function toSaved({ alias, files, projector }: ModelRecord): SavedFile {
  const saved: SavedFile = { alias, path: files[0].path };
  if (projector) saved.projector = projector.path;
  return saved;
}

function replaced(state: SavedState, alias: string, file: SavedFile | undefined): SavedState {
  const others = state.files.filter((other) => other.alias !== alias);
  return { ...state, files: file ? [...others, file] : others };
}
