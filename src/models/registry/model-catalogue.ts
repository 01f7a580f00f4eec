import type { ModelRecord } from "./model-record.ts";

/** One kind of models on disk. */
export interface ModelCatalogue {
  /** Every usable model of this kind; broken ones are left out. */
  list(): Promise<readonly ModelRecord[]>;
  /** The model of exactly this name. Throws when there is one and it cannot be used. */
  find(alias: string): Promise<ModelRecord | undefined>;
}
