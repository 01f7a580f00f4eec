import { ServiceError } from "../../errors/service-error.ts";
import { InvalidGguf, quoted } from "../gguf/byte-reader.ts";
import { readGgufHeader, unusable } from "../gguf/inspect-gguf.ts";
import type { Metadata } from "../gguf/read-metadata.ts";
import { readAlignment, type Tensor } from "../gguf/read-tensors.ts";

/** A tensor of a model that is to be quantized. */
export interface SourceTensor extends Tensor {
  /** Position in the list of files. */
  readonly file: number;
  /** Where its data begins in that file. */
  readonly start: number;
}

/** What lies where in the files of a model. */
export interface SourceLayout {
  readonly files: readonly string[];
  /** Of the first file. */
  readonly metadata: Metadata;
  /** Its keys in order, and the bytes of each with its value. */
  readonly entries: readonly { readonly key: string; readonly start: number; readonly end: number }[];
  /** In llama.cpp's order. */
  readonly tensors: readonly SourceTensor[];
  readonly alignment: number;
}

/**
 * Reads the headers of a model's files.
 * @param files all shards in order
 * @throws ServiceError invalid_model_file or model_file_not_found
 */
export async function readLayout(files: readonly [string, ...string[]]): Promise<SourceLayout> {
  const entries: { key: string; start: number; end: number }[] = [];
  const tensors: SourceTensor[] = [];
  let metadata: Metadata | undefined;
  for (const [file, path] of files.entries()) {
    const own: Tensor[] = [];
    const header = await readGgufHeader(path, {
      onTensor: (tensor) => own.push(tensor),
      ...(file === 0 && { onEntry: (key, start, end) => entries.push({ key, start, end }) }),
    });
    metadata ??= header.metadata;
    const { dataStart } = header.tensors;
    for (const tensor of own) tensors.push({ ...tensor, file, start: dataStart + tensor.offset });
  }
  try {
    checkNames(tensors);
    return {
      files,
      metadata: metadata!,
      entries,
      tensors: inOrder(tensors),
      alignment: readAlignment(metadata!),
    };
  } catch (error) {
    throw error instanceof ServiceError ? error : unusable(files[0], error);
  }
}

function checkNames(tensors: readonly SourceTensor[]): void {
  const seen = new Set<string>();
  for (const { name } of tensors) {
    if (seen.has(name)) throw new InvalidGguf(`two of its shards have the tensor ${quoted(name)}`);
    seen.add(name);
  }
}

/** By block, those outside of blocks first, then by the bytes of their names. */
function inOrder(tensors: readonly SourceTensor[]): SourceTensor[] {
  return tensors
    .map((tensor) => ({ tensor, block: blockOf(tensor.name), bytes: Buffer.from(tensor.name) }))
    .toSorted((a, b) => a.block - b.block || Buffer.compare(a.bytes, b.bytes))
    .map(({ tensor }) => tensor);
}

function blockOf(name: string): number {
  const block = /^blk\.(\d+)/.exec(name)?.[1];
  return block === undefined ? -1 : Number(block);
}
