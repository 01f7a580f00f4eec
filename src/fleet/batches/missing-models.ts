import type { Logger } from "pino";
import type { BatchModels } from "./batch-models.ts";
import type { LineGroup, SharedBatch } from "./batch-record.ts";
import type { LineRuns } from "./line-runs.ts";

interface MissingModelsOptions {
  readonly models: Pick<BatchModels, "isAway">;
  readonly runs: Pick<LineRuns, "groups">;
  readonly logger: Pick<Logger, "warn">;
}

/** Says which batches wait for a machine that has their model. */
export class MissingModels {
  readonly #options: MissingModelsOptions;
  /** Batches whose wait the log has, with the reason. */
  readonly #told = new Map<string, string>();

  constructor(options: MissingModelsOptions) {
    this.#options = options;
  }

  /** Why lines of a batch wait; undefined: all that are left have a machine. */
  async reason(batch: SharedBatch): Promise<string | undefined> {
    const { status, groups } = batch;
    if (status !== "in_progress") return undefined;
    const away = [...groups.entries()].filter(([, group]) => this.#options.models.isAway(group));
    if (away.length === 0) return undefined;
    const left = await this.#options.runs.groups(batch);
    const names = away.filter(([index]) => left.has(index)).map(([, { name }]) => nameOf({ name }));
    return names.length > 0
      ? `waits for a machine that has ${names.join(" and for one that has ")}`
      : undefined;
  }

  /** Tells the log once that a batch waits. */
  async tell(batch: SharedBatch): Promise<void> {
    const reason = await this.reason(batch);
    if (reason === undefined) return this.forget(batch.id);
    if (this.#told.get(batch.id) === reason) return;
    this.#told.set(batch.id, reason);
    this.#options.logger.warn({ batch: batch.id }, `A batch ${reason}`);
  }

  /** The batch is not led from here any longer. */
  forget(batch: string): void {
    this.#told.delete(batch);
  }
}

function nameOf({ name }: Pick<LineGroup, "name">): string {
  return name === "" ? "the default model that it began with" : name;
}
