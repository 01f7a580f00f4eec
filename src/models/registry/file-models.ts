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

/** Codes of errors with which state.update() reports a full or read-only disk. */
const SAVE_ERRORS: ReadonlySet<ErrorCode> = new Set(["insufficient_disk", "cache_not_writable"]);

type SavedFile = SavedState["files"][number];

/** Models that users have loaded by path; their files stay where they are. */
export class FileModels {
  readonly #options: RegistryOptions;
  /** Entries that could not be saved on a full or read-only disk; they last until the daemon ends. */
  readonly #unsaved = new Map<string, SavedFile>();

  constructor(options: RegistryOptions) {
    this.#options = options;
  }

  has(alias: string): boolean {
    return this.#saved(alias) !== undefined;
  }

  /** Returns all usable models. */
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

  /** Builds the record of a file without registering it. */
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
   * Registers a record, replacing another file with the same name. Returns a function that undoes this, unless the
   * entry has changed since.
   * @throws ServiceError model_exists if the name has been taken in the meantime, perhaps by another daemon
   */
  async add(record: ModelRecord): Promise<() => Promise<void>> {
    const { alias } = record;
    const before = this.#savedInState(alias);
    const saved = toSaved(record);
    if (isDeepStrictEqual(this.#saved(alias), saved)) return async () => {};
    try {
      if (!(await this.#compareAndSwap(alias, before, saved))) {
        throw new ServiceError("model_exists", `There is a model "${alias}" already; choose another alias.`);
      }
      this.#unsaved.delete(alias);
    } catch (error) {
      return this.#registerUnsaved(saved, error);
    }
    return async () => void (await this.#compareAndSwap(alias, saved, before));
  }

  /** Registers an entry in memory only: the file is usable even if the state file cannot be written. */
  #registerUnsaved(saved: SavedFile, error: unknown): () => Promise<void> {
    if (!(error instanceof ServiceError && SAVE_ERRORS.has(error.code))) throw error;
    const { alias } = saved;
    const before = this.#unsaved.get(alias);
    this.#unsaved.set(alias, saved);
    this.#options.logger.warn(
      { model: alias },
      `The model is known until the daemon ends, and then forgotten. ${error.message}`,
    );
    return async () => void (before ? this.#unsaved.set(alias, before) : this.#unsaved.delete(alias));
  }

  /** Registers a record; false if its name has been taken in the meantime. */
  async claim(record: ModelRecord): Promise<boolean> {
    const saved = toSaved(record);
    try {
      return await this.#compareAndSwap(record.alias, undefined, saved);
    } catch (error) {
      this.#registerUnsaved(saved, error);
      return true;
    }
  }

  async unregister(alias: string): Promise<void> {
    if (this.#unsaved.delete(alias) && !this.#savedInState(alias)) return;
    await this.#options.state.update((state) => withFile(state, alias, undefined));
  }

  /** Reads a projector that a load request names. */
  async projector(file: string): Promise<Projector> {
    const within = this.#options.config.models.allowed_dirs;
    return await readProjector({ path: path.resolve(file), within }, this.#options.inspect);
  }

  /** Returns the file of a draft model that a load request names. */
  draft(file: string): ModelFile {
    return { path: path.resolve(file), within: this.#options.config.models.allowed_dirs };
  }

  /**
   * Replaces an entry in the state file. Returns false, and changes nothing, if the entry is no longer `before` or a
   * created model has taken the name.
   */
  async #compareAndSwap(
    alias: string,
    before: SavedFile | undefined,
    after: SavedFile | undefined,
  ): Promise<boolean> {
    let isSwapped = false;
    await this.#options.state.update((state) => {
      const now = state.files.find((file) => file.alias === alias);
      const isCreated = after !== undefined && state.definitions.some((other) => other.alias === alias);
      isSwapped = isDeepStrictEqual(now, before) && !isCreated;
      return isSwapped ? withFile(state, alias, after) : state;
    });
    return isSwapped;
  }

  #saved(alias: string): SavedFile | undefined {
    return this.#unsaved.get(alias) ?? this.#savedInState(alias);
  }

  #savedInState(alias: string): SavedFile | undefined {
    return this.#options.state.current.files.find((file) => file.alias === alias);
  }
}

function toSaved({ alias, files, projector }: ModelRecord): SavedFile {
  const saved: SavedFile = { alias, path: files[0].path };
  if (projector) saved.projector = projector.path;
  return saved;
}

function withFile(state: SavedState, alias: string, file: SavedFile | undefined): SavedState {
  const otherFiles = state.files.filter((other) => other.alias !== alias);
  return { ...state, files: file ? [...otherFiles, file] : otherFiles };
}
