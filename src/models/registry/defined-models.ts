import { ServiceError } from "../../errors/service-error.ts";
import { NO_SETTINGS } from "../model.ts";
import type { RegistryOptions } from "../models-options.ts";
import { filesOf, type ModelDefinition, printModelfile, readModelfile } from "../modelfile/read-modelfile.ts";
import type { SavedState } from "./state-file.ts";
import { derivedRecord, usableRecords, type ModelRecord } from "./model-record.ts";
import type { ModelRegistry } from "./model-registry.ts";

type OtherModels = Pick<ModelRegistry, "findBase" | "folders" | "isTaken" | "newName" | "ownName">;

/** Throws what is wrong with a model that is about to be created. */
export type CheckDefinition = (record: ModelRecord, definition: ModelDefinition) => Promise<void>;

/** A model that is not created yet. */
export interface ModelDraft {
  readonly alias: string;
  readonly definition: ModelDefinition;
  readonly record: ModelRecord;
}

type SavedDefinition = SavedState["definitions"][number];

/** Longest chain of models created from each other; a longer one is a cycle. */
const MAX_CHAIN = 16;

/** The models created from Modelfiles. */
export class DefinedModels {
  readonly #options: RegistryOptions;
  readonly #registry: OtherModels;

  /** @param registry the other models */
  constructor(options: RegistryOptions, registry: OtherModels) {
    this.#options = options;
    this.#registry = registry;
  }

  has(alias: string): boolean {
    return this.#saved(alias) !== undefined;
  }

  /** All usable models. */
  async list(): Promise<readonly ModelRecord[]> {
    const { state, logger } = this.#options;
    return await usableRecords(
      state.current.definitions,
      async ({ alias }) => await this.find(alias),
      (error, { alias }) => logger.warn({ err: error, model: alias }, "A created model cannot be used now"),
    );
  }

  async find(alias: string, depth = 0): Promise<ModelRecord | undefined> {
    const definition = this.#definition(alias);
    return definition && (await this.#record(alias, definition, depth));
  }

  /**
   * Creates a model, or replaces one that was created before. Nothing is saved unless the model could be loaded: its base is
   * on disk, its files are of the right kind, its digest is correct, and its template terminates.
   */
  async create(
    name: string,
    modelfile: string,
    baseFolder: string | undefined,
    check: CheckDefinition,
  ): Promise<ModelRecord> {
    const alias = this.#registry.newName(name);
    if (!this.has(alias)) await this.#checkFree(alias);
    return await this.#make(
      { alias, modelfile, ...(baseFolder !== undefined && { baseFolder }) },
      true,
      check,
    );
  }

  /**
   * What a Modelfile describes whose base is to be quantized, without creating it.
   * @throws ServiceError as create() does, apart from its check
   */
  async draft(name: string, modelfile: string, baseFolder: string | undefined): Promise<ModelDraft> {
    const alias = this.#registry.newName(name);
    if (!this.has(alias)) await this.#checkFree(alias);
    const definition = readModelfile(modelfile, baseFolder);
    return { alias, definition, record: await this.#record(alias, definition, 0, noSource) };
  }

  /** Creates a model with the Modelfile of another. */
  async copy(source: ModelRecord, target: string, check: CheckDefinition): Promise<ModelRecord> {
    const alias = this.#registry.newName(target);
    await this.#checkFree(alias);
    return await this.#make({ alias, modelfile: this.print(source) }, false, check);
  }

  /** The Modelfile of a created model as it was written. */
  written(alias: string): string | undefined {
    return this.#saved(alias)?.modelfile;
  }

  /** The files that the Modelfile of a created model names; none of one that cannot be read. */
  filesOf(alias: string): string[] {
    try {
      const definition = this.#definition(alias);
      return definition ? filesOf(definition) : [];
    } catch {
      return [];
    }
  }

  /** The created model whose Modelfile begins with this line. */
  findByFirstLine(line: string): { readonly alias: string; readonly modelfile: string } | undefined {
    return this.#options.state.current.definitions.find(({ modelfile }) => modelfile.startsWith(`${line}\n`));
  }

  /** A Modelfile that recreates this model. */
  print(record: ModelRecord): string {
    const { alias } = record;
    const isOwn = this.#registry.ownName(alias) !== undefined;
    const known = isOwn ? this.#definition(alias) : this.#registry.folders.definition(alias);
    return printModelfile(known ?? plainDefinition(record));
  }

  #definition(alias: string): ModelDefinition | undefined {
    const saved = this.#saved(alias);
    return saved && readModelfile(saved.modelfile, saved.baseFolder);
  }

  /** @throws ServiceError model_exists if the name has been taken in the meantime, perhaps by another daemon */
  async #make(saved: SavedDefinition, mayReplace: boolean, check: CheckDefinition): Promise<ModelRecord> {
    const { alias, modelfile, baseFolder } = saved;
    const definition = readModelfile(modelfile, baseFolder);
    this.#checkNoCircle(alias, definition.from);
    const record = await this.#record(alias, definition, 0);
    await check(record, definition);
    await this.#options.state.update((state) => {
      const others = state.definitions.filter((other) => other.alias !== alias);
      const isReplaced = others.length < state.definitions.length;
      if ((isReplaced && !mayReplace) || state.files.some((file) => file.alias === alias))
        throw exists(alias);
      return { ...state, definitions: [...others, saved] };
    });
    return record;
  }

  async #checkFree(alias: string): Promise<void> {
    if (await this.#registry.isTaken(alias)) throw exists(alias);
  }

  /** A model that replaces another might be created from one that is created from it. */
  #checkNoCircle(alias: string, from: string): void {
    const seen = new Set<string>();
    for (let name = this.#registry.ownName(from) ?? from; !seen.has(name);) {
      if (name === alias) {
        throw new ServiceError("invalid_modelfile", `"${alias}" would be created from itself.`);
      }
      seen.add(name);
      const next = this.#definition(name)?.from;
      if (next === undefined) return;
      name = this.#registry.ownName(next) ?? next;
    }
  }

  /** The record of a definition; throws `model_not_found` if its base is not on disk, with the message of `missing`. */
  async #record(
    alias: string,
    definition: ModelDefinition,
    depth: number,
    missing: (from: string, alias: string) => string = noBase,
  ): Promise<ModelRecord> {
    if (depth > MAX_CHAIN) {
      throw new ServiceError("invalid_modelfile", `${alias} is created from itself through other models.`);
    }
    const base = await this.#registry.findBase(definition.from, depth + 1);
    if (!base) throw new ServiceError("model_not_found", missing(definition.from, alias));
    const source = { kind: "modelfile", base: definition.from } as const;
    const { config, inspect } = this.#options;
    return await derivedRecord({ alias, source }, definition, base, config.models.allowed_dirs, inspect);
  }

  async forget(alias: string): Promise<void> {
    await this.#options.state.update((state) => ({
      ...state,
      definitions: state.definitions.filter((definition) => definition.alias !== alias),
    }));
  }

  #saved(alias: string): SavedDefinition | undefined {
    return this.#options.state.current.definitions.find((definition) => definition.alias === alias);
  }
}

function exists(alias: string): ServiceError {
  return new ServiceError("model_exists", `There is a model "${alias}" already.`);
}

/** The definition of a model that was not created from a Modelfile. */
function plainDefinition({ alias, source, files, projector }: ModelRecord): ModelDefinition {
  const from = source.kind === "hub" ? source.spec : source.kind === "file" ? files[0].path : alias;
  return {
    from,
    settings: NO_SETTINGS,
    adapters: [],
    // The name of a model that ships includes its projector.
    projector: source.kind === "shipped" ? undefined : projector?.path,
    digest: undefined,
    license: undefined,
    author: undefined,
    unused: [],
  };
}

function noBase(from: string, alias: string): string {
  return `${alias} is created from ${from}, which is not on disk; pull it first.`;
}

function noSource(from: string): string {
  return `The model to quantize, ${from}, is not on disk; "daybreak list" shows those that are, and "daybreak pull" gets others.`;
}
