import { existsSync, mkdirSync, renameSync } from "node:fs";
import path from "node:path";
import {
  type GgufFile,
  type GgufTensor,
  randomBlocks,
  tensorBytes,
  writeGguf,
} from "../../../test/support/gguf-writer.ts";
import { benchModel, type Quantization, type Shape, type ShapeName, SHAPES } from "../cpu/bench-models.ts";

/** Weights of a token's row that are one piece, a whole number of blocks in all formats. */
const PIECE = 256;
/** Pieces that rows are put together from, so that rows differ although they are written quickly. */
const PIECES = 256;
/** So large that what the blocks add to a token's row does not hide it. */
const DEVIATION = 20;
/** Another number than any token's. */
const OTHER_ROWS = 0x4000_0000;

/** A model and a draft model for it. */
interface Pair {
  readonly model: string;
  readonly draft: string;
}

/**
 * Writes, unless they are there, two models of the bench's shapes that have the same tokens.
 * @param agreement see {@link sureModel}
 */
export function ensureAgreeingModels(
  folder: string,
  shapes: { readonly model: ShapeName; readonly draft: ShapeName },
  quantization: Quantization,
  agreement: number,
): Pair {
  const { vocabulary } = SHAPES[shapes.draft];
  const ensure = (shape: ShapeName, share: number): string => {
    const name = `next-token-${shape}-${vocabulary}-tokens-${Math.round(100 * share)}-${quantization}.gguf`;
    const file = path.join(folder, name);
    if (existsSync(file)) return file;
    mkdirSync(folder, { recursive: true });
    const unfinished = `${file}.${process.pid}.tmp`;
    writeGguf(unfinished, sureModel({ ...SHAPES[shape], vocabulary }, quantization, share));
    renameSync(unfinished, file);
    return file;
  };
  return { model: ensure(shapes.model, 1), draft: ensure(shapes.draft, agreement) };
}

/**
 * A model that is sure of what it says: behind each token comes the next one of the vocabulary. Embeddings of tokens are large
 * and all different, and the output matrix has them too, one row later; all other weights are random, so that every operator
 * costs what it does otherwise.
 * @param shape its width is 512 or more
 * @param agreement share of the tokens behind which it says the next one; behind others it is as sure of another one
 */
export function sureModel(shape: Shape, quantization: Quantization, agreement = 1): GgufFile {
  const { metadata, tensors } = benchModel(shape, quantization);
  return { metadata, tensors: tensors.flatMap((tensor) => sure(tensor, agreement)) };
}

/** The embedding with rows that differ, and an output matrix that knows what comes next. */
function sure(tensor: GgufTensor, share: number): GgufTensor[] {
  if (tensor.name !== "token_embd.weight") return [tensor];
  const [width = 0, vocabulary = 0] = tensor.shape;
  const pieces = randomBlocks({ shape: [PIECE, PIECES], type: tensor.type }, DEVIATION, 1);
  const bytes = tensorBytes({ shape: [PIECE], type: tensor.type });
  const rowOf = (token: number): Uint8Array => {
    const row = new Uint8Array((width / PIECE) * bytes);
    for (let at = 0; at < width / PIECE; at++) {
      const piece = mixed(token * 31 + at) % PIECES;
      row.set(pieces.subarray(piece * bytes, (piece + 1) * bytes), at * bytes);
    }
    return row;
  };
  const before = (token: number): number => (token + vocabulary - 1) % vocabulary;
  const agrees = (token: number): boolean => mixed(token) / 2 ** 32 < share;
  return [
    { ...tensor, data: { rows: rowOf } },
    {
      ...tensor,
      name: "output.weight",
      data: { rows: (token) => rowOf(agrees(token) ? before(token) : OTHER_ROWS + token) },
    },
  ];
}

/** A number below 2^32 that looks random. */
function mixed(number: number): number {
  let value = Math.imul(number ^ (number >>> 16), 0x45d9f3b);
  value = Math.imul(value ^ (value >>> 16), 0x45d9f3b);
  return (value ^ (value >>> 16)) >>> 0;
}
