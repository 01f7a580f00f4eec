import type { GgufSummary, ModelSettings, ModelSource } from "../model.ts";
import type { ModelFile } from "../paths/model-file-path.ts";

/** A model on disk: everything about it that does not depend on whether it is loaded. */
export interface ModelRecord {
  readonly alias: string;
  readonly source: ModelSource;
  /** All shards in order. */
  readonly files: readonly [ModelFile, ...ModelFile[]];
  readonly projector: ModelFile | undefined;
  readonly adapters: readonly { readonly file: ModelFile; readonly scale: number }[];
  readonly gguf: GgufSummary;
  readonly settings: ModelSettings;
  /** SHA-256 that the GGUF file must have, in hexadecimal. */
  readonly digest: string | undefined;
  /** Unix milliseconds. */
  readonly modifiedAt: number;
}

/** The settings of a model that nobody has set anything for. */
export const NO_SETTINGS: ModelSettings = {
  system: undefined,
  template: undefined,
  sampling: {},
  maxTokens: undefined,
  stop: [],
  contextSize: undefined,
  gpuLayers: undefined,
  flashAttention: undefined,
  thinking: undefined,
  toolFormat: undefined,
  capabilities: {},
};
