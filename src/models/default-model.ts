import type { Logger } from "pino";
import { ServiceError } from "../errors/service-error.ts";
import type { ModelRecord } from "./registry/model-record.ts";
import type { ModelRegistry } from "./registry/model-registry.ts";
import type { StateFile } from "./registry/state-file.ts";

/** The model that ships; the default unless something else is chosen. */
const SHIPPED_DEFAULT = "daybreak-mini";

interface DefaultModelOptions {
  readonly registry: Pick<ModelRegistry, "find" | "list" | "registerFile" | "resolve">;
  readonly state: StateFile;
  /** models.default of the configuration: applies at each start, until another model is chosen. */
  readonly configured: string | undefined;
  readonly logger: Pick<Logger, "warn">;
}

/**
 * Which model answers when a request names none: the one chosen since the start, the configured one, the one
 * chosen before the start, the shipped one, or any.
 */
export class DefaultModel {
  readonly #options: DefaultModelOptions;
  #chosen: string | undefined;
  #current: string | undefined;
  /** The saved choice, as last read. */
  #saved: string | undefined;

  constructor(options: DefaultModelOptions) {
    this.#options = options;
    this.#saved = options.state.current.defaultAlias;
  }

  get alias(): string | undefined {
    if (this.#seeChoice()) this.#current = this.#chosen;
    return this.#current;
  }

  /**
   * The default for a request.
   * @param isThere whether a model with this name can be found
   * @throws ServiceError model_not_found when there is no model at all
   */
  async require(isThere: (alias: string) => Promise<boolean>): Promise<string> {
    const { alias } = this;
    if (alias !== undefined && (await isThere(alias))) return alias;
    // Another daemon that shares the cache has deleted it, or the first model has been added since.
    await this.refresh();
    if (this.alias !== undefined) return this.alias;
    throw new ServiceError(
      "model_not_found",
      "No model on this machine generates text; download one with POST /api/models/pull or daybreak pull.",
    );
  }

  /** Reads the saved choice again. */
  async refresh(): Promise<void> {
    const { registry, state } = this.#options;
    this.#seeChoice();
    const records = await registry.list();
    const onDisk = (alias: string | undefined): string | undefined =>
      records.some((record) => record.alias === alias) ? alias : undefined;
    this.#current =
      onDisk(this.#chosen) ??
      (await this.#configured()) ??
      onDisk(state.current.defaultAlias) ??
      onDisk(SHIPPED_DEFAULT) ??
      anyModel(records);
  }

  async choose(alias: string): Promise<void> {
    await this.#options.state.update((state) => ({ ...state, defaultAlias: alias }));
    this.#chosen = alias;
    await this.refresh();
  }

  /** Whether another daemon that shares the state has chosen since; its choice counts like one made here. */
  #seeChoice(): boolean {
    const { defaultAlias } = this.#options.state.current;
    if (defaultAlias === this.#saved) return false;
    this.#saved = defaultAlias;
    this.#chosen = defaultAlias;
    return defaultAlias !== undefined;
  }

  /**
   * The configured model's own name. While it is not usable, the name in the configuration, so that requests for the
   * default say what is wrong with it.
   */
  async #configured(): Promise<string | undefined> {
    const { registry, configured, logger } = this.#options;
    if (configured === undefined) return undefined;
    try {
      const resolved = registry.resolve(configured);
      const record =
        resolved.kind === "path"
          ? await registry.registerFile(resolved.path)
          : await registry.find(configured);
      return record?.alias ?? configured;
    } catch (error) {
      logger.warn({ err: error, model: configured }, "The configured default model cannot be used");
      return configured;
    }
  }
}

function anyModel(records: readonly ModelRecord[]): string | undefined {
  return records.find(({ gguf }) => gguf.purpose === "generate")?.alias;
}
