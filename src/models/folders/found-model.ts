/** A model in a folder of another program. All paths are absolute, as the folder names them, and lead to files inside it. */
export interface FoundModel {
  /** What its program calls it. */
  readonly name: string;
  /** What it should be called here; it may be taken, and need not be a valid name. */
  readonly wish: string;
  /** All shards in order. */
  readonly files: readonly [string, ...string[]];
  readonly projector: string | undefined;
  readonly adapters: readonly string[];
  /** Lines of a Modelfile, besides those about files; each is valid. */
  readonly settings: readonly string[];
  /** What of its settings could not be kept, in sentences. */
  readonly notes: readonly string[];
}

/** Something that looks like a model, and why it cannot be used. */
export interface LeftOut {
  readonly name: string;
  /** A sentence without its final period. */
  readonly reason: string;
}

/** What is in a folder of models. */
export interface FolderContents {
  readonly models: readonly FoundModel[];
  readonly leftOut: readonly LeftOut[];
}
