import { realpath } from "node:fs/promises";
import type { Logger } from "pino";
import { rethrowExhaustion, ServiceError } from "../../errors/service-error.ts";
import type { ModelSource } from "../model.ts";
import type { LoadOptions } from "../models.ts";
import type { RegistryOptions } from "../models-options.ts";
import type { NameResolver, ResolvedName } from "../names/name-resolver.ts";
import { fileStem } from "../names/model-file-names.ts";
import { printModelfile } from "../modelfile/read-modelfile.ts";
import {
  alreadyExists,
  type CheckDefinition,
  DefinedModels,
  type ModelDraft,
  plainDefinition,
} from "./defined-models.ts";
import { FileModels, ShippedModels } from "./file-models.ts";
import { FolderModels, HubModels } from "./folder-models.ts";
import type { ModelRecord, RecordSource } from "./model-record.ts";

/** Leaves space for a number within the maximum length of a name. */
const MAX_STEM_LENGTH = 64;
/** Name for files whose own names cannot be converted to a valid one. */
const DEFAULT_NAME = "model";

interface RecordToLoad {
  readonly record: ModelRecord;
  /** Undoes the registration of its file. */
  readonly undo: () => Promise<void>;
}

/**
 * The models on disk, by name. A name is looked up in this order: created models, files loaded by path, shipped models,
 * folders of models.dirs, and the hub cache by alias or spec.
 */
export class ModelRegistry {
  readonly defined: DefinedModels;
  readonly files: FileModels;
  readonly shipped: ShippedModels;
  readonly folders: FolderModels;
  readonly hub: HubModels;
  readonly #resolver: NameResolver;
  readonly #logger: Pick<Logger, "debug" | "warn">;

  constructor(options: RegistryOptions) {
    this.#resolver = options.resolver;
    this.#logger = options.logger;
    this.files = new FileModels(options);
    this.shipped = new ShippedModels(options);
    this.defined = new DefinedModels(options, async (from) => await this.#findBase(from));
    this.folders = new FolderModels(options, (preferred) => this.#toModelName(preferred));
    this.hub = new HubModels(
      options,
      (alias) => this.defined.has(alias) || this.files.has(alias) || this.folders.has(alias),
    );
  }

  async list(): Promise<readonly ModelRecord[]> {
    // Scanned first: the hub's models are named by their specs if a model in a folder has their alias.
    await this.folders.readers();
    const sources = [this.defined, this.files, this.shipped, this.folders, this.hub];
    const records = await Promise.all(sources.map(async (source) => await this.#usableRecords(source)));
    const byAlias = new Map<string, ModelRecord>();
    for (const record of records.flat()) if (!byAlias.has(record.alias)) byAlias.set(record.alias, record);
    return [...byAlias.values()].toSorted((a, b) => (a.alias < b.alias ? -1 : 1));
  }

  async #usableRecords(source: RecordSource): Promise<ModelRecord[]> {
    const records = [...(await source.readers(false))].map(async ([alias, read]) => {
      try {
        return [await read()];
      } catch (error) {
        rethrowExhaustion(error);
        this.#logger[source.unusableLogLevel]({ err: error, model: alias }, "A model cannot be used");
        return [];
      }
    });
    return (await Promise.all(records)).flat();
  }

  /** Finds a model by name. Throws `invalid_model_name`, or an error about the model's files. */
  async find(name: string): Promise<ModelRecord | undefined> {
    return await this.#find(this.#resolver.resolve(name), false);
  }

  /** Like find(), but throws `model_not_found` with advice. */
  async require(name: string): Promise<ModelRecord> {
    const record = await this.find(name);
    if (record) return record;
    throw new ServiceError("model_not_found", this.#missingMessage(name), { param: "model" });
  }

  #missingMessage(name: string): string {
    const resolved = this.#resolver.resolve(name);
    if (resolved.kind === "alias" || resolved.kind === "spec")
      return `The model "${name}" is not on this machine; download it with POST /api/models/pull or "daybreak pull ${name}".`;
    if (resolved.kind === "name" && this.shipped.hidden.has(resolved.name))
      return `The model "${name}" has been deleted; it ships with Daybreak, and "daybreak load ${name}" or POST /api/models/load brings it back.`;
    if (resolved.kind === "path")
      return `No model has the file "${name}"; load it with POST /api/models/load or "daybreak load ${name}", then use the name that it gets.`;
    return `No model "${name}" is known; GET /api/models or "daybreak list" shows those that are there, "daybreak search" and "daybreak pull" get others.`;
  }

  /**
   * Returns the shipped model of this name for a load or pull, and undoes its deletion. Undefined if the name belongs
   * to another model.
   */
  async restoreShipped(name: string): Promise<ModelRecord | undefined> {
    const resolved = this.#resolver.resolve(name);
    if (resolved.kind !== "name" || this.registeredName(name) !== undefined) return undefined;
    this.shipped.hidden.delete(resolved.name);
    return await (await this.shipped.readers(false)).get(resolved.name)?.();
  }

  /** Returns the alias of a created model or of a file loaded by path, usable or not; undefined for other names. */
  registeredName(name: string): string | undefined {
    const resolved = this.#resolver.resolve(name);
    const isRegistered =
      "name" in resolved && (this.defined.has(resolved.name) || this.files.has(resolved.name));
    return isRegistered ? resolved.name : undefined;
  }

  /** @throws ServiceError unsupported_feature for a model in a folder of models.dirs, which a scan would find again */
  async checkRemovable(name: string): Promise<void> {
    const record = this.registeredName(name) === undefined ? await this.find(name) : undefined;
    if (record?.source.kind !== "file") return;
    throw new ServiceError(
      "unsupported_feature",
      `"${record.alias}" is in a folder of models.dirs; delete its file ${record.files[0].path}, or take the folder out of the configuration.`,
    );
  }

  /**
   * Removes a model; only files that can be downloaded again are deleted.
   * @returns the kind of its source
   */
  async remove(name: string): Promise<ModelSource["kind"]> {
    const registered = this.registeredName(name);
    if (registered !== undefined) {
      const isCreated = this.defined.has(registered);
      await (isCreated ? this.defined : this.files).unregister(registered);
      return isCreated ? "modelfile" : "file";
    }
    const record = await this.require(name);
    if (record.source.kind === "hub") await this.hub.remove(record);
    else this.shipped.hidden.add(record.alias);
    return record.source.kind;
  }

  resolve(name: string): ResolvedName {
    return this.#resolver.resolve(name);
  }

  /** Returns the canonical form of a new model's name. Throws `invalid_model_name` for specs and paths. */
  newName(name: string): string {
    const resolved = this.#resolver.resolve(name);
    if ("name" in resolved) return resolved.name;
    throw new ServiceError(
      "invalid_model_name",
      `"${name}" cannot be a model's own name: it reads as a ${resolved.kind === "spec" ? "hub spec" : "path"}.`,
    );
  }

  /** Finds the model of a load request. A file that is not registered yet is registered under its alias. */
  async recordToLoad(options: LoadOptions): Promise<RecordToLoad> {
    if (options.path !== undefined) return await this.#registerPath(options, options.path);
    const resolved = this.#resolver.resolve(options.alias);
    await this.restoreShipped(options.alias);
    const record =
      resolved.kind === "path" ? await this.registerFile(resolved.path) : await this.require(options.alias);
    return { record: await this.#withFiles(record, options), undo: async () => {} };
  }

  /** Creates a model, or replaces a created one. Its relative paths start at `baseFolder`. */
  async create(
    name: string,
    modelfile: string,
    baseFolder: string | undefined,
    check: CheckDefinition,
  ): Promise<ModelRecord> {
    const alias = await this.#nameToCreate(name);
    const saved = { alias, modelfile, ...(baseFolder !== undefined && { baseFolder }) };
    return await this.defined.save(saved, true, check);
  }

  /** Checks a Modelfile whose base is to be quantized, without creating the model. */
  async draft(name: string, modelfile: string): Promise<ModelDraft> {
    return await this.defined.draft(await this.#nameToCreate(name), modelfile);
  }

  /** Creates a model with the Modelfile of another. */
  async copy(source: ModelRecord, target: string, check: CheckDefinition): Promise<ModelRecord> {
    const alias = this.newName(target);
    await this.#checkFree(alias);
    return await this.defined.save({ alias, modelfile: this.print(source) }, false, check);
  }

  async #nameToCreate(name: string): Promise<string> {
    const alias = this.newName(name);
    if (!this.defined.has(alias)) await this.#checkFree(alias);
    return alias;
  }

  async #checkFree(alias: string): Promise<void> {
    if (await this.#isTaken(alias)) throw alreadyExists(alias);
  }

  /** Prints a Modelfile that recreates a model. */
  print(record: ModelRecord): string {
    const { alias } = record;
    const source = this.registeredName(alias) === undefined ? this.folders : this.defined;
    return printModelfile(source.definition(alias) ?? plainDefinition(record));
  }

  async #registerPath(options: LoadOptions, path: string): Promise<RecordToLoad> {
    const alias = this.newName(options.alias);
    const record = await this.files.inspect(alias, path, options.mmproj);
    const other = this.files.has(alias) ? undefined : await this.find(alias);
    if (other && (await isSameFile(other, record)))
      return { record: await this.#withFiles(other, options), undo: async () => {} };
    if (other)
      throw new ServiceError("model_exists", `"${alias}" is another model already; choose another alias.`);
    const undo = await this.files.add(record);
    return { record: await this.#withFiles(record, { draft: options.draft }), undo };
  }

  /** Adds the projector and the draft model of a load request to a record. */
  async #withFiles(record: ModelRecord, { mmproj, draft }: Partial<LoadOptions>): Promise<ModelRecord> {
    return {
      ...record,
      ...(mmproj !== undefined && { projector: await this.files.projector(mmproj) }),
      ...(draft !== undefined && { draft: this.files.file(draft) }),
    };
  }

  /** Returns the model of a file. A new file is registered under its stem, with a number if that is taken. */
  async registerFile(path: string): Promise<ModelRecord> {
    const existing = await this.#findByPath(path);
    if (existing) return existing;
    for (;;) {
      const record = await this.files.inspect(await this.freeName(fileStem(path)), path, undefined);
      if (await this.files.claim(record)) return record;
    }
  }

  /** Converts a preferred name to a valid name that no model has, with a number if it is taken. */
  async freeName(preferred: string): Promise<string> {
    const plain = this.#toModelName(preferred);
    for (let number = 1; ; number++) {
      const name = number === 1 ? plain : `${plain}-${number}`;
      if (!(await this.#isTaken(name))) return name;
    }
  }

  /** True if a model, usable or not, has the name. */
  async #isTaken(name: string): Promise<boolean> {
    return this.defined.has(name) || this.files.has(name) || (await this.find(name)) !== undefined;
  }

  #toModelName(preferred: string): string {
    const plain = preferred
      .replaceAll(/[^A-Za-z0-9]+/g, "-")
      .slice(0, MAX_STEM_LENGTH)
      .replaceAll(/^-|-$/g, "");
    for (const name of [preferred, plain]) {
      try {
        return this.newName(name);
      } catch {
        // Not a valid name; the next one is simpler.
      }
    }
    return DEFAULT_NAME;
  }

  async #findBase(from: string): Promise<ModelRecord | undefined> {
    const resolved = this.#resolver.resolve(from);
    if (resolved.kind !== "path") return await this.#find(resolved, true);
    return await this.files.inspect(fileStem(resolved.path), resolved.path, undefined);
  }

  async #find(resolved: ResolvedName, forBase: boolean): Promise<ModelRecord | undefined> {
    if (resolved.kind === "path") return await this.#findByPath(resolved.path);
    if (resolved.kind === "spec") return await this.hub.find(resolved.spec);
    for (const source of [this.defined, this.files, this.shipped, this.folders]) {
      const read = (await source.readers(forBase)).get(resolved.name);
      if (read) return await read();
    }
    return resolved.kind === "alias" ? await this.hub.find(resolved.spec) : undefined;
  }

  /** Finds the model of a file, and not models created from it, which have the same files. */
  async #findByPath(path: string): Promise<ModelRecord | undefined> {
    const realPath = await realpath(path).catch(() => undefined);
    if (realPath === undefined) return undefined;
    for (const record of await this.list()) {
      if ("base" in record.source && record.source.base !== undefined) continue;
      const paths = await Promise.all(record.files.map(async (file) => await realpath(file.path)));
      if (paths.includes(realPath)) return record;
    }
    return undefined;
  }
}

async function isSameFile(a: ModelRecord, b: ModelRecord): Promise<boolean> {
  const [one, other] = await Promise.all([realpath(a.files[0].path), realpath(b.files[0].path)]);
  return one === other;
}
