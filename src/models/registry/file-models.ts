import { readFile } from "node:fs/promises";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { ErrorCode } from "../../errors/error-codes.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { listNames } from "../../files/file-operations.ts";
import { readModelfile } from "../modelfile/read-modelfile.ts";
import type { RegistryOptions } from "../models-options.ts";
import { fileStem, shardOf } from "../names/model-file-names.ts";
import type { SavedState } from "./state-file.ts";
import {
  buildRecord,
  derivedRecord,
  type ModelFile,
  type ModelRecord,
  type Projector,
  readProjector,
  type RecordReaders,
  type RecordSource,
} from "./model-record.ts";

/** Codes of errors with which state.update() reports a full or read-only disk. */
const SAVE_ERRORS: ReadonlySet<ErrorCode> = new Set(["insufficient_disk", "cache_not_writable"]);

type SavedFile = SavedState["files"][number];

/** Models that users have loaded by path; their files stay where they are. */
export class FileModels implements RecordSource {
  readonly unusableLogLevel = "warn";
  readonly #options: RegistryOptions;
  /** Entries that could not be saved on a full or read-only disk; they last until the daemon ends. */
  readonly #unsaved = new Map<string, SavedFile>();

  constructor(options: RegistryOptions) {
    this.#options = options;
  }

  has(alias: string): boolean {
    return this.#saved(alias) !== undefined;
  }

  readers(): RecordReaders {
    const saved = [...this.#options.state.current.files, ...this.#unsaved.values()];
    return new Map(
      saved.map(({ alias, path: file, projector }) => [
        alias,
        async () => await this.inspect(alias, file, projector),
      ]),
    );
  }

  /** Builds the record of a file without registering it. */
  async inspect(alias: string, file: string, projector: string | undefined): Promise<ModelRecord> {
    const parts = {
      alias,
      source: { kind: "file" },
      ...this.file(file),
      projector: projector && path.resolve(projector),
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
    const saved = toSaved(record);
    if (isDeepStrictEqual(this.#saved(alias), saved)) return async () => {};
    const undo = await this.#register(saved, this.#savedInState(alias));
    if (undo) return undo;
    throw new ServiceError("model_exists", `There is a model "${alias}" already; choose another alias.`);
  }

  /** Registers a record; false if its name has been taken in the meantime. */
  async claim(record: ModelRecord): Promise<boolean> {
    return (await this.#register(toSaved(record), undefined)) !== undefined;
  }

  /** Returns a function that undoes it; undefined if the entry is not `before` any more. */
  async #register(
    saved: SavedFile,
    before: SavedFile | undefined,
  ): Promise<(() => Promise<void>) | undefined> {
    try {
      if (!(await this.#compareAndSwap(saved.alias, before, saved))) return undefined;
    } catch (error) {
      return this.#registerUnsaved(saved, error);
    }
    this.#unsaved.delete(saved.alias);
    return async () => void (await this.#compareAndSwap(saved.alias, saved, before));
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

  async unregister(alias: string): Promise<void> {
    if (this.#unsaved.delete(alias) && !this.#savedInState(alias)) return;
    await this.#options.state.update((state) => withFile(state, alias, undefined));
  }

  /** Reads a projector that a load request names. */
  async projector(file: string): Promise<Projector> {
    return await readProjector(this.file(file), this.#options.inspect);
  }

  /** Returns a file that a load request names. */
  file(file: string): ModelFile {
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
  return { alias, path: files[0].path, ...(projector && { projector: projector.path }) };
}

function withFile(state: SavedState, alias: string, file: SavedFile | undefined): SavedState {
  const otherFiles = state.files.filter((other) => other.alias !== alias);
  return { ...state, files: file ? [...otherFiles, file] : otherFiles };
}

const GGUF = ".gguf";
/** Extension of a shipped Modelfile, which derives a model from another one in the same folder. */
const MODELFILE = ".modelfile";

/** Models that ship with the project: the GGUF files and Modelfiles of one folder, named after their files. */
export class ShippedModels implements RecordSource {
  /** Projectors and adapters are among the files. */
  readonly unusableLogLevel = "debug";
  readonly #options: RegistryOptions;
  /** Aliases of models that are hidden until the next start, or until they are loaded or pulled. */
  readonly hidden = new Set<string>();

  constructor(options: RegistryOptions) {
    this.#options = options;
  }

  /** @param forBase includes hidden models, which models created from them still need */
  async readers(forBase: boolean): Promise<RecordReaders> {
    const names = await listNames(this.#options.shippedDir);
    const models = names.filter((name) => name.endsWith(GGUF) && (shardOf(name)?.index ?? 1) === 1);
    const modelfiles = names.filter((name) => name.endsWith(MODELFILE));
    // A Modelfile takes precedence over a projector or adapter with the same name.
    const files = [
      ...models.map((name) => [fileStem(name), name] as const),
      ...modelfiles.map((name) => [path.basename(name, MODELFILE), name] as const),
    ];
    return new Map(
      files
        .filter(([alias]) => forBase || !this.hidden.has(alias))
        .map(([alias, file]) => [alias, async () => await this.#record(alias, file)]),
    );
  }

  async #record(alias: string, file: string): Promise<ModelRecord> {
    const { shippedDir: folder, inspect } = this.#options;
    if (file.endsWith(GGUF)) {
      const source = { kind: "shipped", base: undefined } as const;
      return await buildRecord(
        { alias, source, path: path.join(folder, file), projector: undefined, within: [] },
        inspect,
      );
    }
    const definition = readModelfile(await readFile(path.join(folder, file), "utf8"), folder);
    const readBase = (await this.readers(true)).get(definition.from);
    if (!readBase)
      throw new ServiceError("model_not_found", `${definition.from} does not ship with ${alias}.`);
    const source = { kind: "shipped", base: definition.from } as const;
    return await derivedRecord({ alias, source }, definition, await readBase(), [], inspect);
  }
}
