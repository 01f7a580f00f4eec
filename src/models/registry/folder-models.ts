import { rethrowExhaustion, ServiceError, toError } from "../../errors/service-error.ts";
import { type FoundModel, modelfileOf } from "../folders/found-model.ts";
import { readModelFolder } from "../folders/read-model-folder.ts";
import type { CachedModel } from "../hub/hub-types.ts";
import { systemClock } from "../loading/available-memory.ts";
import { type ModelDefinition, readModelfile } from "../modelfile/read-modelfile.ts";
import type { RegistryOptions } from "../models-options.ts";
import { type HubSpec, parseHubSpec } from "../names/hub-spec.ts";
import { freeName } from "../names/name-rules.ts";
import {
  buildRecord,
  derivedRecord,
  type ModelRecord,
  type RecordReaders,
  type RecordSource,
} from "./model-record.ts";

/** Minimum time between scans of the folders: requests in quick succession share one. */
const SCAN_INTERVAL_MS = 5000;

interface Entry {
  /** Real path of the folder that its files must be in. */
  readonly folder: string;
  readonly found: FoundModel;
}

type Entries = ReadonlyMap<string, Entry>;

/** Models in the folders of `models.dirs`; their files stay where they are. */
export class FolderModels implements RecordSource {
  readonly unusableLogLevel = "debug";
  readonly #options: RegistryOptions;
  readonly #toModelName: (preferred: string) => string;
  #lastScan: { readonly at: number; readonly entries: Promise<Entries> } | undefined;
  #latestEntries: Entries = new Map();
  /** Last warning about each folder, which is not repeated. */
  readonly #lastWarnings = new Map<string, string>();

  /** @param toModelName converts the name in the folder to a valid model name */
  constructor(options: RegistryOptions, toModelName: (preferred: string) => string) {
    this.#options = options;
    this.#toModelName = toModelName;
  }

  /** True if the last scan found a model with this name. */
  has(alias: string): boolean {
    return this.#latestEntries.has(alias);
  }

  async readers(): Promise<RecordReaders> {
    const entries = [...(await this.#entries())];
    return new Map(entries.map(([alias, entry]) => [alias, async () => await this.#record(alias, entry)]));
  }

  /** Returns a definition that recreates a model that the last scan found. */
  definition(alias: string): ModelDefinition | undefined {
    const entry = this.#latestEntries.get(alias);
    return entry && definitionOf(entry);
  }

  async #record(alias: string, entry: Entry): Promise<ModelRecord> {
    const { inspect } = this.#options;
    const source = { kind: "file" } as const;
    const within = [entry.folder];
    const parts = { alias, source, path: entry.found.files[0], projector: undefined, within };
    const base = await buildRecord(parts, inspect);
    return await derivedRecord({ alias, source }, definitionOf(entry), base, within, inspect);
  }

  async #entries(): Promise<Entries> {
    const { clock = systemClock, config } = this.#options;
    if (config.models.dirs.length === 0) return this.#latestEntries;
    const now = clock.now();
    if (this.#lastScan === undefined || now - this.#lastScan.at >= SCAN_INTERVAL_MS) {
      const entries = this.#scan();
      this.#lastScan = { at: now, entries };
      entries.catch(() => (this.#lastScan = undefined));
    }
    return await this.#lastScan.entries;
  }

  async #scan(): Promise<Entries> {
    const entries = new Map<string, Entry>();
    for (const dir of this.#options.config.models.dirs) {
      for (const entry of await this.#readFolder(dir)) {
        const name = this.#toModelName(entry.found.preferredName);
        entries.set(
          freeName(name, (alias) => entries.has(alias)),
          entry,
        );
      }
    }
    this.#latestEntries = entries;
    return entries;
  }

  /** Reads the models of a folder; empty if that is unreadable, such as one on a disk that is not mounted. */
  async #readFolder(dir: string): Promise<Entry[]> {
    try {
      const { folder, models } = await readModelFolder(dir);
      this.#lastWarnings.delete(dir);
      return models.map((found) => ({ folder, found }));
    } catch (error) {
      rethrowExhaustion(error);
      const { message } = toError(error);
      if (this.#lastWarnings.get(dir) !== message)
        this.#options.logger.warn({ folder: dir }, `models.dirs: ${message}`);
      this.#lastWarnings.set(dir, message);
      return [];
    }
  }
}

function definitionOf({ found }: Entry): ModelDefinition {
  const { files, projector, adapters, settings } = found;
  return readModelfile(modelfileOf({ model: files[0], projector, adapters }, settings), undefined);
}

/** Models in the hub cache. Each GGUF file is a model, named by its alias, or by its hub spec if it has none. */
export class HubModels implements RecordSource {
  readonly unusableLogLevel = "debug";
  readonly #options: RegistryOptions;
  readonly #isTaken: (alias: string) => boolean;

  /** @param isTaken true if another model has the alias; the hub's model is then named by its spec */
  constructor(options: RegistryOptions, isTaken: (alias: string) => boolean) {
    this.#options = options;
    this.#isTaken = isTaken;
  }

  /** Returns the readers by hub spec; the alias of a model may depend on those of other sources. */
  async readers(): Promise<RecordReaders> {
    const models = await this.#options.hub.list();
    return new Map(models.map((cached) => [cached.spec, async () => await this.#record(cached)]));
  }

  async find(spec: HubSpec): Promise<ModelRecord | undefined> {
    const cached = await this.#options.hub.find(spec);
    return cached && (await this.#record(cached));
  }

  aliasOf(cached: CachedModel): string {
    const isMain = !cached.spec.includes("@");
    const alias = isMain ? this.#options.resolver.aliasOf(cached.repo, cached.file) : undefined;
    return alias === undefined || this.#isTaken(alias) ? cached.spec : alias;
  }

  async remove(record: ModelRecord): Promise<void> {
    // Found by its spec, because list() omits older snapshots with the same content.
    const { source } = record;
    const cached =
      source.kind === "hub" ? await this.#options.hub.find(parseHubSpec(source.spec)) : undefined;
    if (!cached)
      throw new ServiceError("model_not_found", `The model ${record.alias} is not on disk any more.`);
    await this.#options.hub.remove(cached);
  }

  async #record(cached: CachedModel): Promise<ModelRecord> {
    const { spec, repo, revision, projector, files } = cached;
    const parts = {
      alias: this.aliasOf(cached),
      source: { kind: "hub", spec, repo, revision },
      path: files[0] ?? "",
      projector,
      within: [this.#options.config.cache_dir],
    } as const;
    return await buildRecord(parts, this.#options.inspect);
  }
}
