/** How a tensor's weights are stored: `type` is ggml's number, and `weights` of them take `bytes` bytes. */
export interface BlockFormat {
  readonly type: number;
  readonly weights: number;
  readonly bytes: number;
}

/** One tensor to be converted, or copied when both formats are the same. */
export interface TensorJob {
  /** Position in {@link QuantizeJob.files}. */
  readonly file: number;
  /** Where its data begins in that file. */
  readonly offset: number;
  readonly weights: number;
  readonly from: BlockFormat;
  readonly to: BlockFormat;
}

/** All that the process which quantizes is told. */
export interface QuantizeJob {
  /** Absolute paths. */
  readonly files: readonly string[];
  /** In the order in which their data comes out. */
  readonly tensors: readonly TensorJob[];
  /** Each tensor's data is padded with zeros to a multiple of this. */
  readonly alignment: number;
  readonly threads: number;
}

/** Bytes of so many weights, which are a whole number of blocks. */
export function bytesOf(weights: number, format: BlockFormat): number {
  return (weights / format.weights) * format.bytes;
}

/** Bytes to the next multiple. */
export function paddingOf(bytes: number, alignment: number): number {
  return Math.ceil(bytes / alignment) * alignment - bytes;
}

/** A part of a tensor, converted in one step. */
export interface Piece extends TensorJob {
  /** Zeros to append. */
  readonly padding: number;
}

/** A multiple of every block, so that what comes out does not depend on it; in memory it takes 4 MiB as F32. */
const PIECE_WEIGHTS = 1024 * 1024;

/** Cuts the tensors of a job into parts that fit into memory. Blocks are independent of each other. */
export function* piecesOf({ tensors, alignment }: QuantizeJob): Generator<Piece, void, undefined> {
  for (const tensor of tensors) {
    const whole = bytesOf(tensor.weights, tensor.to);
    for (let done = 0; done < tensor.weights; done += PIECE_WEIGHTS) {
      const weights = Math.min(PIECE_WEIGHTS, tensor.weights - done);
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
