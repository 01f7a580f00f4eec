import { ServiceError } from "../../errors/service-error.ts";
import { NO_SETTINGS } from "../model.ts";
import type { RegistryOptions } from "../models-options.ts";
import { filesOf, type ModelDefinition, readModelfile } from "../modelfile/read-modelfile.ts";
import type { SavedState } from "./state-file.ts";
import { derivedRecord, type ModelRecord, type RecordReaders, type RecordSource } from "./model-record.ts";
/** Checks a model that is about to be created; throws if it could not be loaded. */
export type CheckDefinition = (record: ModelRecord, definition: ModelDefinition) => Promise<void>;

/** A model that has been checked but not created yet. */
export interface ModelDraft {
  readonly definition: ModelDefinition;
  readonly record: ModelRecord;
}

type SavedDefinition = SavedState["definitions"][number];

/** Models created from Modelfiles. */
export class DefinedModels implements RecordSource {
  readonly unusableLogLevel = "warn";
  readonly #options: RegistryOptions;
  readonly #findBase: (from: string) => Promise<ModelRecord | undefined>;

  /** @param findBase finds the model that FROM of a Modelfile names */
  constructor(options: RegistryOptions, findBase: (from: string) => Promise<ModelRecord | undefined>) {
    this.#options = options;
    this.#findBase = findBase;
  }

  has(alias: string): boolean {
    return this.#saved(alias) !== undefined;
  }

  readers(): RecordReaders {
    return new Map(
      this.#options.state.current.definitions.map(({ alias, modelfile, baseFolder }) => [
        alias,
        async () => await this.#record(alias, readModelfile(modelfile, baseFolder)),
      ]),
    );
  }

  /** @throws ServiceError like save(), except for the errors of its `check` */
  async draft(alias: string, modelfile: string): Promise<ModelDraft> {
    const definition = readModelfile(modelfile, undefined);
    return { definition, record: await this.#record(alias, definition, sourceMissing) };
  }

  /** Returns the text of a created model's Modelfile. */
  modelfileText(alias: string): string | undefined {
    return this.#saved(alias)?.modelfile;
  }

  /** Returns the files that a created model's Modelfile names; empty if that cannot be parsed. */
  filesOf(alias: string): string[] {
    try {
      const definition = this.definition(alias);
      return definition ? filesOf(definition) : [];
    } catch {
      return [];
    }
  }

  /** Finds the created model whose Modelfile begins with this line. */
  findByFirstLine(line: string): { readonly alias: string; readonly modelfile: string } | undefined {
    return this.#options.state.current.definitions.find(({ modelfile }) => modelfile.startsWith(`${line}\n`));
  }

  /** @throws ServiceError invalid_modelfile */
  definition(alias: string): ModelDefinition | undefined {
    const saved = this.#saved(alias);
    return saved && readModelfile(saved.modelfile, saved.baseFolder);
  }

  /**
   * Saves a model only if it can be loaded: its base is on disk, its files are of the right kind, its digest is correct
   * and its template works.
   * @throws ServiceError model_exists if the name has been taken in the meantime, perhaps by another daemon
   */
  async save(saved: SavedDefinition, mayReplace: boolean, check: CheckDefinition): Promise<ModelRecord> {
    const { alias, modelfile, baseFolder } = saved;
    const definition = readModelfile(modelfile, baseFolder);
    const record = await this.#record(alias, definition);
    await check(record, definition);
    await this.#options.state.update((state) => {
      const otherDefinitions = state.definitions.filter((other) => other.alias !== alias);
      const isReplaced = otherDefinitions.length < state.definitions.length;
      if ((isReplaced && !mayReplace) || state.files.some((file) => file.alias === alias))
        throw alreadyExists(alias);
      return { ...state, definitions: [...otherDefinitions, saved] };
    });
    return record;
  }

  /** A replaced model may be the base of its new base, and an edited state file may have any cycle. */
  #checkNoCycle(alias: string, from: string): void {
    const seen = new Set<string>();
    for (let name = this.#nameOf(from); !seen.has(name);) {
      if (name === alias) {
        throw new ServiceError("invalid_modelfile", `"${alias}" would be created from itself.`);
      }
      seen.add(name);
      const next = this.definition(name)?.from;
      if (next === undefined) return;
      name = this.#nameOf(next);
    }
  }

  /** Returns the name of a created model without what it need not have, such as ":latest"; other names as they are. */
  #nameOf(from: string): string {
    const resolved = this.#options.resolver.resolve(from);
    return "name" in resolved && this.has(resolved.name) ? resolved.name : from;
  }

  /** Builds the record of a definition; throws `model_not_found` if its base is not on disk. */
  async #record(
    alias: string,
    definition: ModelDefinition,
    missingMessage: (from: string, alias: string) => string = baseMissing,
  ): Promise<ModelRecord> {
    this.#checkNoCycle(alias, definition.from);
    const base = await this.#findBase(definition.from);
    if (!base) throw new ServiceError("model_not_found", missingMessage(definition.from, alias));
    const source = { kind: "modelfile", base: definition.from } as const;
    const { config, inspect } = this.#options;
    return await derivedRecord({ alias, source }, definition, base, config.models.allowed_dirs, inspect);
  }

  async unregister(alias: string): Promise<void> {
    await this.#options.state.update((state) => ({
      ...state,
      definitions: state.definitions.filter((definition) => definition.alias !== alias),
    }));
  }

  #saved(alias: string): SavedDefinition | undefined {
    return this.#options.state.current.definitions.find((definition) => definition.alias === alias);
  }
}

/** Error for a name that another model has. */
export function alreadyExists(alias: string): ServiceError {
  return new ServiceError("model_exists", `There is a model "${alias}" already.`);
}

/** Definition of a model without a Modelfile. */
export function plainDefinition({ alias, source, files, projector }: ModelRecord): ModelDefinition {
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

function baseMissing(from: string, alias: string): string {
  return `${alias} is created from ${from}, which is not on disk; pull it first.`;
}

function sourceMissing(from: string): string {
  return `The model to quantize, ${from}, is not on disk; "daybreak list" shows those that are, and "daybreak pull" gets others.`;
}
