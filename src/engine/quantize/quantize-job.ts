/** Format of a tensor's blocks: `type` is ggml's number, and a block of `weights` weights takes `bytes` bytes. */
export interface BlockFormat {
  readonly type: number;
  readonly weights: number;
  readonly bytes: number;
}

/** One tensor to convert, or to copy when both formats are the same. */
export interface TensorJob {
  /** Position in {@link QuantizeJob.files}. */
  readonly file: number;
  /** Offset of its data in that file. */
  readonly offset: number;
  readonly weights: number;
  readonly from: BlockFormat;
  readonly to: BlockFormat;
}

export interface QuantizeJob {
  /** Absolute paths. */
  readonly files: readonly string[];
  /** In the order of the output. */
  readonly tensors: readonly TensorJob[];
  /** Each tensor's data is padded with zeros to a multiple of this number of bytes. */
  readonly alignment: number;
  readonly threads: number;
}

/** Size in bytes of weights that fill their blocks. */
export function bytesOf(weights: number, format: BlockFormat): number {
  return (weights / format.weights) * format.bytes;
}

/** Number of padding bytes up to the next multiple. */
export function paddingOf(bytes: number, alignment: number): number {
  return Math.ceil(bytes / alignment) * alignment - bytes;
}

/** A part of a tensor, converted in one step. */
export interface TensorChunk extends TensorJob {
  /** Number of zeros to append. */
  readonly padding: number;
}

/** Weights of a chunk: a multiple of all block sizes, so that it does not affect the output; 4 MiB as F32. */
const CHUNK_WEIGHTS = 1024 * 1024;

/** Cuts the tensors of a job into parts that fit into memory. Blocks are independent of each other. */
export function* chunksOf({ tensors, alignment }: QuantizeJob): Generator<TensorChunk, void, undefined> {
  for (const tensor of tensors) {
    const whole = bytesOf(tensor.weights, tensor.to);
    for (let done = 0; done < tensor.weights; done += CHUNK_WEIGHTS) {
      const weights = Math.min(CHUNK_WEIGHTS, tensor.weights - done);
      const isLast = done + weights === tensor.weights;
      yield {
        ...tensor,
        offset: tensor.offset + bytesOf(done, tensor.from),
        weights,
        padding: isLast ? paddingOf(whole, alignment) : 0,
      };
    }
  }
}

/** Exit code of the process that quantizes when a tensor holds values that are not finite; not one of Node's own. */
export const INVALID_WEIGHTS_EXIT_CODE = 79;
