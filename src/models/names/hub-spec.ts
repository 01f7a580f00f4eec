/**
 * A place on the model hub: `hf:owner/repo[:file-or-quant][@revision]`. Every part has been checked: no `..`,
 * no separators where none belong.
 */
export interface HubSpec {
  readonly owner: string;
  readonly repo: string;
  /** Path of a GGUF file inside the repository (the first shard of a sharded one). Never set with `quant`. */
  readonly file?: string | undefined;
  /** Quantisation in upper case, such as "Q4_K_M"; the store picks the file. */
  readonly quant?: string | undefined;
  /** Branch, tag or commit; absent: main. */
  readonly revision?: string | undefined;
}
