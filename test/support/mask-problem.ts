import { OFFSETS } from "../../wasm/llama-cpp-build.ts";
import { IS_HOST, type MaskModule } from "./mask-modules.ts";

const at = (field: keyof typeof OFFSETS): number => OFFSETS[field].at;
const CELLS_BYTES = 6272;
const SET_BYTES = 32;
const TYPE = { f32: 0, f16: 1 } as const;
/** Sizes and offsets of ggml's structures. */
const TENSOR = { type: 0, buffer: 8, ne: 16, data: 248, bytes: 336 } as const;
const BUFFER = { type: 88, bytes: 128 } as const;
const BUFFER_TYPE = { isHost: 56, bytes: 64 } as const;
const HPARAMS_BYTES = 36_864;

/** A cell of the cache: its position, -1 if it is empty, the place in an image, and the sequences that have it. */
export interface Cell {
  readonly position: number;
  readonly x: number;
  readonly y: number;
  readonly sequences: readonly number[];
}

export interface Token {
  readonly position: number;
  readonly x: number;
  readonly y: number;
  readonly sequence: number;
}

/** A step of a model and its cache. */
export interface MaskProblem {
  readonly type: keyof typeof TYPE;
  readonly isCausal: boolean;
  /** enum llama_non_causal_type */
  readonly nonCausalType: number;
  /** enum llama_swa_type */
  readonly window: number;
  readonly windowTokens: number;
  readonly hasAlibi: boolean;
  /** Numbers that a position has: 1, 3 or 4. */
  readonly positionNumbers: number;
  /** Streams of the KV cache, each with as many cells as the mask has columns. */
  readonly streams: readonly (readonly Cell[])[];
  /** The stream of each sequence. */
  readonly streamOf: readonly number[];
  /** Streams in this step, which have as many tokens each. */
  readonly stepStreams: number;
  readonly tokens: readonly Token[];
}

/** The bytes of the mask that a module makes. */
export function maskOf(module: MaskModule, problem: MaskProblem): Uint8Array {
  const { view } = module;
  const { streams, tokens, positionNumbers } = problem;
  const place = (bytes: number): number => {
    const found = module.allocate(bytes);
    new Uint8Array(view.buffer).fill(0, found, found + bytes);
    return found;
  };
  const pointer = (where: number, value: number): void => view.setBigUint64(where, BigInt(value), true);
  const numbers = (values: readonly number[]): number => {
    const found = place(4 * Math.max(1, values.length));
    for (const [index, value] of values.entries()) view.setInt32(found + 4 * index, value, true);
    return found;
  };

  const hparams = place(HPARAMS_BYTES);
  view.setUint8(hparams + at("llama_hparams.use_alibi"), problem.hasAlibi ? 1 : 0);
  view.setInt32(hparams + at("llama_hparams.non_causal_type"), problem.nonCausalType, true);

  const list = place(CELLS_BYTES * streams.length);
  for (const [index, cells] of streams.entries()) {
    const stream = list + CELLS_BYTES * index;
    pointer(stream + at("llama_kv_cells.pos"), numbers(cells.map(({ position }) => position)));
    const places = cells.flatMap(({ x, y }) => [x, y, 0]);
    pointer(stream + at("llama_kv_cells.ext"), numbers(places));
    const sets = place(SET_BYTES * cells.length);
    for (const [cell, { sequences }] of cells.entries()) {
      for (const each of sequences) {
        const byte = sets + SET_BYTES * cell + (each >> 3);
        view.setUint8(byte, view.getUint8(byte) | (1 << (each & 7)));
      }
    }
    pointer(stream + at("llama_kv_cells.seq"), sets);
  }
  const vector = place(24);
  pointer(vector, list);
  pointer(vector + 8, list + CELLS_BYTES * streams.length);

  const cache = place(256);
  pointer(cache + at("llama_kv_cache.hparams"), hparams);
  view.setInt32(cache + at("llama_kv_cache.n_swa"), problem.windowTokens, true);
  view.setInt32(cache + at("llama_kv_cache.swa_type"), problem.window, true);
  pointer(cache + at("llama_kv_cache.v_cells"), vector);
  pointer(cache + at("llama_kv_cache.seq_to_stream"), numbers(problem.streamOf));
  const context = place(64);
  pointer(context + at("llama_kv_cache_context.kv"), cache);

  const step = place(128);
  view.setInt32(step + at("llama_ubatch.n_tokens"), tokens.length, true);
  view.setInt32(step + at("llama_ubatch.n_pos"), positionNumbers, true);
  const positions = [
    ...tokens.map(({ position }) => position),
    ...(positionNumbers > 1 ? [...tokens.map(({ y }) => y), ...tokens.map(({ x }) => x)] : []),
  ];
  pointer(step + at("llama_ubatch.pos"), numbers(positions));
  const sequences = place(8 * tokens.length);
  for (const [index, { sequence }] of tokens.entries()) pointer(sequences + 8 * index, numbers([sequence]));
  pointer(step + at("llama_ubatch.seq_id"), sequences);

  const columns = streams[0]!.length;
  const bytes = columns * tokens.length * (problem.type === "f16" ? 2 : 4);
  const [mask, buffer, bufferType] = [place(TENSOR.bytes), place(BUFFER.bytes), place(BUFFER_TYPE.bytes)];
  view.setBigUint64(bufferType + BUFFER_TYPE.isHost, IS_HOST, true);
  pointer(buffer + BUFFER.type, bufferType);
  view.setInt32(mask + TENSOR.type, TYPE[problem.type], true);
  pointer(mask + TENSOR.buffer, buffer);
  const ne = [columns, tokens.length / problem.stepStreams, 1, problem.stepStreams];
  for (const [index, each] of ne.entries()) pointer(mask + TENSOR.ne + 8 * index, each);
  const data = place(bytes);
  new Uint8Array(view.buffer).fill(0xaa, data, data + bytes);
  pointer(mask + TENSOR.data, data);

  module.fill(context, mask, step, problem.isCausal);
  return new Uint8Array(view.buffer).slice(data, data + bytes);
}
