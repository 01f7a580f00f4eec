import { ServiceError, throwExhaustion } from "../../errors/service-error.ts";
import { toError } from "../../errors/to-error.ts";
import { type FoundModel, modelfileOf } from "../folders/found-model.ts";
import { readModelFolder } from "../folders/read-model-folder.ts";
import type { CachedModel } from "../hub/hub-store.ts";
import { systemClock } from "../loading/available-memory.ts";
import { type ModelDefinition, readModelfile } from "../modelfile/read-modelfile.ts";
import type { RegistryOptions } from "../models-options.ts";
import { type HubSpec, parseHubSpec } from "../names/hub-spec.ts";
import { buildRecord, derivedRecord, type ModelRecord, usableRecords } from "./model-record.ts";

/** How long a look into the folders counts: several requests in a row make one. */
const LOOK_MS = 5000;

interface Entry {
  /** Real path of the folder, which its files must be in. */
  readonly folder: string;
  readonly found: FoundModel;
}

type Entries = ReadonlyMap<string, Entry>;

/** The models in the folders of `models.dirs`, which stay where they are. */
export class FolderModels {
  readonly #options: RegistryOptions;
  readonly #plainName: (wish: string) => string;
  #last: { readonly at: number; readonly entries: Promise<Entries> } | undefined;
  /** As last seen. */
  #known: Entries = new Map();
  /** What has been said of each folder. */
  readonly #warned = new Map<string, string>();

  /** @param plainName converts what a model is called there to a valid name */
  constructor(options: RegistryOptions, plainName: (wish: string) => string) {
    this.#options = options;
    this.#plainName = plainName;
  }

  /** Whether a model had this name when the folders were last looked into. */
  has(alias: string): boolean {
    return this.#known.has(alias);
  }

  /** All usable models. */
  async list(): Promise<readonly ModelRecord[]> {
    const { logger } = this.#options;
    return await usableRecords(
      [...(await this.#entries())],
      async ([alias, entry]) => await this.#record(alias, entry),
      (error, [, { found }]) => logger.debug({ err: error, path: found.files[0] }, "Not a model"),
    );
  }

  async find(alias: string): Promise<ModelRecord | undefined> {
    const entry = (await this.#entries()).get(alias);
    return entry && (await this.#record(alias, entry));
  }

  /** A definition that recreates the model of this name; undefined where none is known. */
  definition(alias: string): ModelDefinition | undefined {
    const entry = this.#known.get(alias);
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
    if (config.models.dirs.length === 0) return this.#known;
    const now = clock.now();
    if (this.#last === undefined || now - this.#last.at >= LOOK_MS) {
      const entries = this.#look();
      this.#last = { at: now, entries };
      entries.catch(() => (this.#last = undefined));
    }
    return await this.#last.entries;
  }

  async #look(): Promise<Entries> {
    const entries = new Map<string, Entry>();
    for (const dir of this.#options.config.models.dirs) {
      for (const entry of await this.#read(dir)) {
        const plain = this.#plainName(entry.found.wish);
        let alias = plain;
        for (let number = 2; entries.has(alias); number++) alias = `${plain}-${number}`;
        entries.set(alias, entry);
      }
    }
    this.#known = entries;
    return entries;
  }

  /** The models of a folder; none of one that cannot be read, such as a disk that is not there now. */
  async #read(dir: string): Promise<Entry[]> {
    try {
      const { folder, models } = await readModelFolder(dir);
      this.#warned.delete(dir);
      return models.map((found) => ({ folder, found }));
    } catch (error) {
      throwExhaustion(error);
      const { message } = toError(error);
      if (this.#warned.get(dir) !== message)
        this.#options.logger.warn({ folder: dir }, `models.dirs: ${message}`);
      this.#warned.set(dir, message);
      return [];
    }
  }
}

function definitionOf({ found }: Entry): ModelDefinition {
  const { files, projector, adapters, settings } = found;
  return readModelfile(modelfileOf({ model: files[0], projector, adapters }, settings), undefined);
}

/** The models of the hub cache. Each file is a model, named by its alias, or by its spec if it has none. */
export class HubModels {
  readonly #options: RegistryOptions;
  readonly #isTaken: (alias: string) => boolean;

  /** @param isTaken whether another model has the name; a hub model is then named by its spec */
  constructor(options: RegistryOptions, isTaken: (alias: string) => boolean) {
    this.#options = options;
    this.#isTaken = isTaken;
  }

  /** All usable models. */
  async list(): Promise<readonly ModelRecord[]> {
    const { hub, logger } = this.#options;
    return await usableRecords(
      await hub.list(),
      async (cached) => await this.#record(cached),
      (error, { spec }) => logger.debug({ err: error, spec }, "A file of the hub cache is not a model"),
    );
  }

  async find(spec: HubSpec): Promise<ModelRecord | undefined> {
    const cached = await this.#options.hub.find(spec);
    return cached && (await this.#record(cached));
  }

  /** The name of a cached model. */
  aliasOf(cached: CachedModel): string {
    const isMain = !cached.spec.includes("@");
    const alias = isMain ? this.#options.resolver.aliasOf(cached.repo, cached.file) : undefined;
    return alias === undefined || this.#isTaken(alias) ? cached.spec : alias;
  }

  /** Removes the files of a model. */
  async remove(record: ModelRecord): Promise<void> {
    // Not from the list, which leaves out entries with the same content.
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
