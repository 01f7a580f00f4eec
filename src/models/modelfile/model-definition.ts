import type { ModelSettings } from "../model.ts";

/** What a Modelfile says, checked and translated; all paths are absolute. */
export interface ModelDefinition {
  /** FROM as written: an alias, a hub spec, another made model, or an absolute path. */
  readonly from: string;
  readonly settings: ModelSettings;
  readonly adapters: readonly { readonly path: string; readonly scale: number }[];
  readonly projector: string | undefined;
  /** SHA-256 of the base's GGUF file, 64 hexadecimal digits in lower case. */
  readonly digest: string | undefined;
  readonly license: string | undefined;
  readonly author: string | undefined;
}

/**
 * Reads a Modelfile; relative paths count from `baseFolder`, and are an error without one. Throws
 * invalid_modelfile with the line. Exported as `readModelfile` by read-modelfile.ts.
 */
export type ReadModelfile = (text: string, baseFolder: string | undefined) => ModelDefinition;

/** Prints a Modelfile that reads back to the same definition. Exported as `printModelfile` by print-modelfile.ts. */
export type PrintModelfile = (definition: ModelDefinition) => string;
