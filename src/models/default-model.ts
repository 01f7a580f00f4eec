import type { Logger } from "pino";
import { ServiceError } from "../errors/service-error.ts";
import type { ModelRecord } from "./registry/model-record.ts";
import type { ModelRegistry } from "./registry/model-registry.ts";
import type { StateFile } from "./registry/state-file.ts";

/** Alias of the shipped model that is the default unless another is chosen or configured. */
const SHIPPED_DEFAULT = "daybreak-mini";

interface DefaultModelOptions {
  readonly registry: ModelRegistry;
  readonly state: StateFile;
  /** `models.default` of the configuration; applies from each start until another model is chosen. */
  readonly configured: string | undefined;
  readonly logger: Pick<Logger, "warn">;
}

/**
 * The model that answers requests without a model name. In order of precedence: the one chosen since the start, the
 * configured one, the one chosen before the start, the shipped one, or any model that generates text.
 */
export class DefaultModel {
  readonly #options: DefaultModelOptions;
  #chosen: string | undefined;
  #current: string | undefined;
  #saved: string | undefined;

  constructor(options: DefaultModelOptions) {
    this.#options = options;
    this.#saved = options.state.current.defaultAlias;
  }

  get alias(): string | undefined {
    if (this.#readSavedChoice()) this.#current = this.#chosen;
    return this.#current;
  }

  /**
   * Returns the alias of the default model.
   * @throws ServiceError model_not_found if no model on this machine generates text
   */
  async require(exists: (alias: string) => Promise<boolean>): Promise<string> {
    const { alias } = this;
    if (alias !== undefined && (await exists(alias))) return alias;
    // Another daemon with the same cache may have deleted the model or added the first one.
    await this.refresh();
    if (this.alias !== undefined) return this.alias;
    throw new ServiceError(
      "model_not_found",
      "No model on this machine generates text; download one with POST /api/models/pull or daybreak pull.",
    );
  }

  /** Determines the default again, from the saved choice, the configuration and the models on disk. */
  async refresh(): Promise<void> {
    const { registry, state } = this.#options;
    this.#readSavedChoice();
    const records = await registry.list();
    const onDisk = (alias: string | undefined): string | undefined =>
      records.some((record) => record.alias === alias) ? alias : undefined;
    this.#current =
      onDisk(this.#chosen) ??
      (await this.#configured()) ??
      onDisk(state.current.defaultAlias) ??
      onDisk(SHIPPED_DEFAULT) ??
      firstGenerating(records);
  }

  async choose(alias: string): Promise<void> {
    await this.#options.state.update((state) => ({ ...state, defaultAlias: alias }));
    this.#chosen = alias;
    await this.refresh();
  }

  /**
   * Adopts the choice that another daemon with the same state file has saved since the last call. True if there is one.
   */
  #readSavedChoice(): boolean {
    const { defaultAlias } = this.#options.state.current;
    if (defaultAlias === this.#saved) return false;
    this.#saved = defaultAlias;
    this.#chosen = defaultAlias;
    return defaultAlias !== undefined;
  }

  /**
   * Alias of the configured model. While that model is unusable, the name in the configuration, so that requests for
   * the default model fail with the reason.
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

function firstGenerating(records: readonly ModelRecord[]): string | undefined {
  return records.find(({ gguf }) => gguf.purpose === "generate")?.alias;
}
