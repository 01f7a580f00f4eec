import type { GgufSummary } from "../model.ts";
import { ByteReader, type ByteSource, claimed, decodeText, InvalidGguf, quoted } from "./byte-reader.ts";
import { GGML_TYPES, type GgmlType } from "./ggml-types.ts";
import { type Metadata, type OnEntry, readMetadata, readName } from "./read-metadata.ts";

const MAGIC = "GGUF";
/** llama.cpp reads versions 2 and 3, little-endian. */
const VERSIONS: ReadonlySet<number> = new Set([2, 3]);
/** Bytes of magic, version, tensor count and key count. */
const FIXED_HEADER_BYTES = 24;
/** Maximum bytes of a header; published ones have below 40 MB (a vocabulary of 260,000 tokens with merges). */
const MAX_HEADER_SIZE = 128 * 1024 * 1024;

export interface GgufHeader {
  readonly metadata: Metadata;
  readonly tensors: TensorSums;
  readonly fileSize: number;
}

/** Callbacks for details that {@link GgufHeader} does not store. */
export interface HeaderListener {
  readonly onEntry?: OnEntry;
  readonly onTensor?: OnTensor;
}

/**
 * Reads the header of one GGUF file, and checks that the file is long enough for its tensors. Format: docs/gguf.md of
 * ggml. Time and memory are bounded by constants, whatever the header claims.
 * @param fileSize bytes of the file
 * @throws InvalidGguf
 */
export async function readHeader(
  file: ByteSource,
  fileSize: number,
  { onEntry, onTensor }: HeaderListener = {},
): Promise<GgufHeader> {
  const reader = new ByteReader(file, Math.min(fileSize, MAX_HEADER_SIZE));
  await reader.ensure(FIXED_HEADER_BYTES);
  if (decodeText(reader.bytes(4)) !== MAGIC) throw new InvalidGguf("it does not begin with GGUF");
  const version = reader.u32();
  if (!VERSIONS.has(version)) throw new InvalidGguf(`its version ${version} is not supported`);
  const tensorCount = reader.u64();
  const keyCount = reader.u64();
  const metadata = await readMetadata(reader, keyCount, onEntry);
  const tensors = await readTensors(reader, tensorCount, metadata, fileSize, onTensor);
  return { metadata, tensors, fileSize };
}

interface TensorSums {
  readonly count: number;
  /** Number of weights in all tensors. */
  readonly parameters: number;
  /** Most frequent type by weights; undefined if there are no weights or it is unknown. */
  readonly mainType: string | undefined;
  readonly hasRankHead: boolean;
  /** True if there is an encoder of images or audio, which belongs into a projector's file. */
  readonly hasEncoder: boolean;
  readonly weightBytes: GgufSummary["weightBytes"];
  /** File position of the tensor data. */
  readonly dataStart: number;
}

type OnTensor = (tensor: Tensor) => void;

/** Maximum tensors, above those of the largest mixtures of experts with one tensor per expert and layer. */
const MAX_TENSORS = 200_000;
/** Maximum bytes of a name: ggml's GGML_MAX_NAME of 64, minus the terminating zero. */
const MAX_NAME_LENGTH = 63;
/** ggml's GGML_MAX_DIMS. */
const MAX_DIMENSIONS = 4;
/** Minimum bytes of an entry: length of an empty name, number of dimensions, type and offset. */
const MIN_TENSOR_BYTES = 24;
const DEFAULT_ALIGNMENT = 32;
/** Minimum bits per weight, which limits the weights of tensors of unknown type. */
const MIN_BITS_PER_WEIGHT = 1;
const RANK_HEAD = "cls.output.weight";
const BLOCK_TENSOR = /^blk\.\d+\./;
/** Prefixes of tensors of encoders and of their projections to the model. */
const ENCODER_TENSOR = /^(?:v|a|mm)\./;

/**
 * Reads the list of tensors that follows the keys. Checks that their data is inside the file and in the same order,
 * which llama.cpp requires.
 */
async function readTensors(
  reader: ByteReader,
  count: number,
  metadata: Metadata,
  fileSize: number,
  onTensor?: OnTensor,
): Promise<TensorSums> {
  if (count > MAX_TENSORS || count * MIN_TENSOR_BYTES > reader.remaining) {
    throw new InvalidGguf(`it is damaged: it claims to have ${claimed(count)} tensors`);
  }
  const alignment = readAlignment(metadata);
  const weightsByType = new Map<number, number>();
  let hasRankHead = false;
  let hasEncoder = false;
  let parameters = 0;
  let dataLength = 0;
  const names = new Set<string>();
  /** Required offset of the next tensor's data; undefined after a tensor of unknown type. */
  let nextOffset: number | undefined = 0;
  const bytes = { blocks: 0, largestInBlocks: 0, embedding: 0, output: 0 };
  for (let index = 0; index < count; index++) {
    const tensor = await readTensor(reader);
    onTensor?.(tensor);
    const { name, type, typeInfo, weights, offset, length } = tensor;
    if (names.has(name)) throw new InvalidGguf(`it has the tensor ${quoted(name)} twice`);
    names.add(name);
    if (nextOffset !== undefined && offset !== nextOffset) {
      throw new InvalidGguf(`it is damaged: the data of its tensor ${quoted(name)} is not where it belongs`);
    }
    nextOffset = typeInfo && Math.ceil((offset + length) / alignment) * alignment;
    if (name === RANK_HEAD) hasRankHead = true;
    if (ENCODER_TENSOR.test(name)) hasEncoder = true;
    parameters += weights;
    weightsByType.set(type, (weightsByType.get(type) ?? 0) + weights);
    dataLength = Math.max(dataLength, offset + length);
    if (BLOCK_TENSOR.test(name)) {
      bytes.blocks += length;
      bytes.largestInBlocks = Math.max(bytes.largestInBlocks, length);
    } else if (name === "token_embd.weight") bytes.embedding += length;
    else if (name === "output.weight") bytes.output += length;
  }
  const dataStart = Math.ceil(reader.position / alignment) * alignment;
  if (count > 0 && dataStart + dataLength > fileSize) {
    throw new InvalidGguf(
      `it is truncated: it should have ${dataStart + dataLength} bytes and has ${fileSize}`,
    );
  }
  return {
    count,
    parameters,
    mainType: mainType(weightsByType),
    hasRankHead,
    hasEncoder,
    weightBytes: bytes,
    dataStart,
  };
}

/** @throws InvalidGguf */
export function readAlignment(metadata: Metadata): number {
  const alignment = metadata.get("general.alignment") ?? DEFAULT_ALIGNMENT;
  if (typeof alignment === "number" && alignment > 0 && Number.isInteger(Math.log2(alignment)))
    return alignment;
  throw new InvalidGguf("its alignment is not a power of two");
}

export interface Tensor {
  readonly name: string;
  /** Dimensions, the row length first. */
  readonly shape: readonly number[];
  readonly type: number;
  /** Undefined: unknown type. */
  readonly typeInfo: GgmlType | undefined;
  readonly weights: number;
  /** Position of its data, from the start of the tensor data. */
  readonly offset: number;
  /** Bytes of its data. */
  readonly length: number;
}

async function readTensor(reader: ByteReader): Promise<Tensor> {
  const name = await readName(reader, MAX_NAME_LENGTH);
  const shape = await readShape(reader, name);
  const [row = 1, ...rest] = shape;
  await reader.ensure(12);
  const type = reader.u32();
  const offset = reader.u64();
  const typeInfo = GGML_TYPES.get(type);
  if (typeInfo && row % typeInfo.block !== 0) {
    throw new InvalidGguf(
      `its tensor ${quoted(name)} has rows of ${claimed(row)} weights, where ${typeInfo.name} has blocks of ${typeInfo.block}`,
    );
  }
  const weights = rest.reduce((product, size) => product * size, row);
  const length = tensorBytes(typeInfo, weights);
  if (!Number.isSafeInteger(offset + length)) {
    throw new InvalidGguf(`it is damaged: its tensor ${quoted(name)} claims impossibly many weights`);
  }
  return { name, shape, type, typeInfo, weights, offset, length };
}

async function readShape(reader: ByteReader, name: string): Promise<number[]> {
  await reader.ensure(4);
  const dimensions = reader.u32();
  if (dimensions > MAX_DIMENSIONS) {
    throw new InvalidGguf(`the tensor ${quoted(name)} has ${dimensions} dimensions`);
  }
  await reader.ensure(dimensions * 8);
  return Array.from({ length: dimensions }, () => reader.u64());
}

function tensorBytes(typeInfo: GgmlType | undefined, weights: number): number {
  if (!typeInfo) return Math.ceil((weights * MIN_BITS_PER_WEIGHT) / 8);
  return Math.ceil(weights / typeInfo.block) * typeInfo.bytes;
}

function mainType(weightsByType: ReadonlyMap<number, number>): string | undefined {
  const [largest] = [...weightsByType].toSorted(([, a], [, b]) => b - a);
  return largest && GGML_TYPES.get(largest[0])?.name;
}
