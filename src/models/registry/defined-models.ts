import type { Logger } from "pino";
import { ServiceError } from "../../errors/service-error.ts";
import type { ModelDefinition, ReadModelfile } from "../modelfile/model-definition.ts";
import type { SavedState } from "../state/saved-state.ts";
import type { StateFile } from "../state/state-file.ts";
import { definitionRecord } from "./definition-record.ts";
import type { ModelCatalogue } from "./model-catalogue.ts";
import type { ModelRecord } from "./model-record.ts";

export interface DefinedModelsOptions {
  readonly state: StateFile;
  readonly readModelfile: ReadModelfile;
  /** Folders that adapters and projectors must lie in; none: anywhere. */
  readonly allowedDirs: readonly string[];
  /** Finds what FROM names. */
  readonly findBase: (from: string, depth: number) => Promise<ModelRecord | undefined>;
  readonly logger: Pick<Logger, "warn">;
}

type SavedDefinition = SavedState["definitions"][number];

/** Longest chain of models made from each other: beyond it, they go in a circle. */
const MAX_CHAIN = 16;

/** The models made from Modelfiles. */
export class DefinedModels implements ModelCatalogue {
  readonly #options: DefinedModelsOptions;

  constructor(options: DefinedModelsOptions) {
    this.#options = options;
  }

  has(alias: string): boolean {
    return this.#saved(alias) !== undefined;
  }

  async list(): Promise<readonly ModelRecord[]> {
    const records = this.#options.state.current.definitions.map(async ({ alias }) => {
      try {
        return await this.find(alias);
      } catch (error) {
        this.#options.logger.warn({ err: error, model: alias }, "A made model cannot be used now");
        return undefined;
      }
    });
    return (await Promise.all(records)).filter((record) => record !== undefined);
  }

  async find(alias: string, depth = 0): Promise<ModelRecord | undefined> {
    const definition = this.definition(alias);
    return definition && (await this.record(alias, definition, depth));
  }

  definition(alias: string): ModelDefinition | undefined {
    const saved = this.#saved(alias);
    return saved && this.#options.readModelfile(saved.modelfile, saved.baseFolder);
  }

  /** The record that a definition makes; throws `model_not_found` when its base is not on disk. */
  async record(alias: string, definition: ModelDefinition, depth = 0): Promise<ModelRecord> {
    if (depth > MAX_CHAIN) {
      throw new ServiceError("invalid_modelfile", `The models that ${alias} is made from go in a circle.`);
    }
    const base = await this.#options.findBase(definition.from, depth + 1);
    if (!base) {
      throw new ServiceError(
        "model_not_found",
        `${alias} is made from ${definition.from}, which is not on disk; pull it first.`,
      );
    }
    return definitionRecord({
      alias,
      source: { kind: "modelfile", base: definition.from },
      definition,
      base,
      within: this.#options.allowedDirs,
    });
  }

  /**
   * Saves a definition, in place of one of the same name where that may be.
   * @throws ServiceError model_exists when the name was given away since it was asked for, by another daemon maybe
   */
  async save(
    { alias, modelfile, baseFolder }: SavedDefinition,
    { mayReplace }: { mayReplace: boolean },
  ): Promise<void> {
    const saved = { alias, modelfile, ...(baseFolder === undefined ? {} : { baseFolder }) };
    await this.#options.state.update((state) => {
      const others = state.definitions.filter((other) => other.alias !== alias);
      const isReplaced = others.length < state.definitions.length;
      if ((isReplaced && !mayReplace) || state.files.some((file) => file.alias === alias)) {
        throw new ServiceError("model_exists", `There is a model "${alias}" already.`);
      }
      return { ...state, definitions: [...others, saved] };
    });
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
