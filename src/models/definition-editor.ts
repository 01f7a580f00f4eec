import type { TryTemplate } from "../engine/try-template.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { ServiceEvents } from "../events/service-events.ts";
import type { LoadPlanner } from "./loading/load-planner.ts";
import type { ModelDefinition, PrintModelfile, ReadModelfile } from "./modelfile/model-definition.ts";
import { NO_SETTINGS, type ModelRecord } from "./registry/model-record.ts";
import type { ModelRegistry } from "./registry/model-registry.ts";
import type { SavedState } from "./state/saved-state.ts";

export interface DefinitionEditorOptions {
  readonly registry: ModelRegistry;
  readonly planner: Pick<LoadPlanner, "check">;
  readonly readModelfile: ReadModelfile;
  readonly printModelfile: PrintModelfile;
  readonly tryTemplate?: TryTemplate | undefined;
  readonly events: Pick<ServiceEvents, "emit">;
}

type SavedDefinition = SavedState["definitions"][number];

/** Makes, copies and prints Modelfile definitions. */
export class DefinitionEditor {
  readonly #options: DefinitionEditorOptions;

  constructor(options: DefinitionEditorOptions) {
    this.#options = options;
  }

  /**
   * Makes a model, or makes one anew that was made before. Nothing is saved unless the model could be loaded: its
   * base is on disk, its files are what they should be, its digest is right, its template comes to an end.
   */
  async create(name: string, modelfile: string, baseFolder: string | undefined): Promise<ModelRecord> {
    const { registry, readModelfile } = this.#options;
    const alias = registry.newName(name);
    if (!registry.defined.has(alias)) await this.#checkFree(alias);
    const definition = readModelfile(modelfile, baseFolder);
    return await this.#save({ alias, modelfile, baseFolder }, definition, { mayReplace: true });
  }

  async copy(source: ModelRecord, target: string): Promise<ModelRecord> {
    const { registry, readModelfile } = this.#options;
    const alias = registry.newName(target);
    await this.#checkFree(alias);
    const modelfile = this.print(source);
    return await this.#save({ alias, modelfile }, readModelfile(modelfile, undefined), { mayReplace: false });
  }

  /** A Modelfile that makes this model again. */
  print(record: ModelRecord): string {
    const { registry, printModelfile } = this.#options;
    return printModelfile(registry.defined.definition(record.alias) ?? plainDefinition(record));
  }

  async #save(
    saved: SavedDefinition,
    definition: ModelDefinition,
    options: { mayReplace: boolean },
  ): Promise<ModelRecord> {
    const { registry, planner, tryTemplate, events } = this.#options;
    const { alias } = saved;
    this.#checkNoCircle(alias, definition.from);
    const record = await registry.defined.record(alias, definition);
    await planner.check(record);
    const { template } = definition.settings;
    if (template !== undefined) await tryTemplate?.(template);
    await registry.defined.save(saved, options);
    events.emit({ type: "model-created", model: alias });
    return record;
  }

  async #checkFree(alias: string): Promise<void> {
    if (!(await this.#options.registry.isTaken(alias))) return;
    throw new ServiceError("model_exists", `There is a model "${alias}" already.`);
  }

  /** A model that replaces another may be made from one that is made from it. */
  #checkNoCircle(alias: string, from: string): void {
    const { registry } = this.#options;
    const seen = new Set<string>();
    for (let name = registry.ownName(from) ?? from; !seen.has(name);) {
      if (name === alias) {
        throw new ServiceError("invalid_modelfile", `"${alias}" would be made from itself.`);
      }
      seen.add(name);
      const next = registry.defined.definition(name)?.from;
      if (next === undefined) return;
      name = registry.ownName(next) ?? next;
    }
  }
}

/** What makes a model that was not made from a Modelfile. */
function plainDefinition({ alias, source, files, projector }: ModelRecord): ModelDefinition {
  const from = source.kind === "hub" ? source.spec : source.kind === "file" ? files[0].path : alias;
  return {
    from,
    settings: NO_SETTINGS,
    adapters: [],
    // The name of a model that ships brings its projector along.
    projector: source.kind === "shipped" ? undefined : projector?.path,
    digest: undefined,
    license: undefined,
    author: undefined,
  };
}
