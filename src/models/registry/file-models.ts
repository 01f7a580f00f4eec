import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Logger } from "pino";
import type { InspectGguf } from "../gguf/inspect-gguf.ts";
import type { ModelFile } from "../paths/model-file-path.ts";
import type { SavedState } from "../state/saved-state.ts";
import type { StateFile } from "../state/state-file.ts";
import { buildRecord, tryRecord, type RecordParts } from "./build-record.ts";
import type { ModelCatalogue } from "./model-catalogue.ts";
import type { ModelRecord } from "./model-record.ts";

export interface FileModelsOptions {
  readonly state: StateFile;
  readonly allowedDirs: readonly string[];
  readonly inspect: InspectGguf;
  readonly logger: Pick<Logger, "warn">;
}

type SavedFile = SavedState["files"][number];

/** The user's own files, known since they were loaded by path. */
export class FileModels implements ModelCatalogue {
  readonly #options: FileModelsOptions;

  constructor(options: FileModelsOptions) {
    this.#options = options;
  }

  has(alias: string): boolean {
    return this.#saved(alias) !== undefined;
  }

  async list(): Promise<readonly ModelRecord[]> {
    const { state, inspect, logger } = this.#options;
    const records = state.current.files.map(
      async (saved) =>
        await tryRecord(this.#parts(saved.alias, saved.path, saved.projector), inspect, (error) =>
          logger.warn({ err: error, model: saved.alias }, "A model's file cannot be used any more"),
        ),
    );
    return (await Promise.all(records)).flat();
  }

  async find(alias: string): Promise<ModelRecord | undefined> {
    const saved = this.#saved(alias);
    return saved && (await this.inspect(alias, saved.path, saved.projector));
  }

  /** The record that a file would get, without registering it. */
  async inspect(alias: string, file: string, projector: string | undefined): Promise<ModelRecord> {
    return await buildRecord(this.#parts(alias, file, projector), this.#options.inspect);
  }

  /**
   * Registers a record of this catalogue, in place of another file of the same name. Returns the function that puts
   * things back as they were.
   */
  async add(record: ModelRecord): Promise<() => Promise<void>> {
    const { alias } = record;
    const before = this.#saved(alias);
    const saved: SavedFile = { alias, path: record.files[0].path };
    if (record.projector) saved.projector = record.projector.path;
    if (isDeepStrictEqual(before, saved)) return async () => {};
    await this.#replace(alias, saved);
    return async () => await this.#replace(alias, before);
  }

  async forget(alias: string): Promise<void> {
    await this.#replace(alias, undefined);
  }

  /** A file that a user has named, with the folders it must lie in. */
  userFile(file: string): ModelFile {
    return { path: path.resolve(file), within: this.#options.allowedDirs };
  }

  async #replace(alias: string, file: SavedFile | undefined): Promise<void> {
    await this.#options.state.update((state) => ({
      ...state,
      files: [...state.files.filter((other) => other.alias !== alias), ...(file ? [file] : [])],
    }));
  }

  #saved(alias: string): SavedFile | undefined {
    return this.#options.state.current.files.find((file) => file.alias === alias);
  }

  #parts(alias: string, file: string, projector: string | undefined): RecordParts {
    return {
      alias,
      source: { kind: "file" },
      path: path.resolve(file),
      projector: projector === undefined ? undefined : path.resolve(projector),
      within: this.#options.allowedDirs,
    };
  }
}
