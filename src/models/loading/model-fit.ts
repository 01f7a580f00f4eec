/** What is known of a model that is not on disk. */
export interface ModelSizes {
  /** Bytes of all its files. */
  readonly fileBytes: number;
  /** Number of weights; undefined: guessed from the bytes and the quantization. */
  readonly parameters: number | undefined;
  /** Tokens of context it was trained for, if that is known. */
  readonly trainedContext: number | undefined;
  /** Such as "Q4_K_M", if the name of its file says it. */
  readonly quantization: string | undefined;
}

/** Whether a model can be loaded, when nothing else is. */
export interface ModelFit {
  readonly fits: boolean;
  /** Bytes of the machine's memory that its engine needs; of the files alone if that is more than any engine can have. */
  readonly neededBytes: number;
  /** Tokens of context that this is for. */
  readonly contextSize: number;
  /** Why it does not fit, in a sentence. */
  readonly reason?: string | undefined;
  /** What would be on the GPU, where models use one. */
  readonly gpu?: { readonly layers: number; readonly allLayers: number; readonly bytes: number } | undefined;
}
