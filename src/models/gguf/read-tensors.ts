import { ByteReader, type ByteSource, claimed, decodeText, InvalidGguf, quoted } from "./byte-reader.ts";
import { GGML_TYPES, type GgmlType } from "./ggml-types.ts";
import { type Metadata, type OnEntry, readMetadata, readName } from "./read-metadata.ts";

const MAGIC = "GGUF";
/** llama.cpp reads versions 2 and 3, little-endian. */
const VERSIONS: ReadonlySet<number> = new Set([2, 3]);
/** Magic, version, tensor count and key count. */
const FIXED_PART = 24;
/** The largest headers of published models are below 40 MB (a vocabulary of 260,000 with its merges). */
const MAX_HEADER_SIZE = 128 * 1024 * 1024;

export interface GgufHeader {
  readonly metadata: Metadata;
  readonly tensors: TensorSums;
  readonly fileSize: number;
}

/** What a header does not keep, for those who need it. */
export interface HeaderListener {
  readonly onEntry?: OnEntry;
  readonly onTensor?: OnTensor;
}

/**
 * Reads the header of one GGUF file, and checks that the file is long enough for the tensors it promises. Format:
 * docs/gguf.md of ggml. Time and memory are bounded by constants, whatever the file's numbers claim.
 * @param fileSize bytes of the file
 * @throws InvalidGguf
 */
export async function readHeader(
  file: ByteSource,
  fileSize: number,
  { onEntry, onTensor }: HeaderListener = {},
): Promise<GgufHeader> {
  const reader = new ByteReader(file, Math.min(fileSize, MAX_HEADER_SIZE));
  await reader.need(FIXED_PART);
  if (decodeText(reader.bytes(4)) !== MAGIC) throw new InvalidGguf("it does not begin with GGUF");
  const version = reader.u32();
  if (!VERSIONS.has(version)) throw new InvalidGguf(`its version ${version} is not supported`);
  const tensorCount = reader.u64();
  const keyCount = reader.u64();
  const metadata = await readMetadata(reader, keyCount, onEntry);
  const tensors = await readTensors(reader, tensorCount, metadata, fileSize, onTensor);
  return { metadata, tensors, fileSize };
}

/** Sums over the list of tensors; the list itself is not kept. */
interface TensorSums {
  readonly count: number;
  /** Weights in all tensors. */
  readonly parameters: number;
  /** Type of most weights; undefined if there are none, or if it is not a known type. */
  readonly mainType: string | undefined;
  /** Whether it has a reranker's output head. */
  readonly hasRankHead: boolean;
  /** Whether it has the encoder of images or sounds that belongs into a projector's file. */
  readonly hasEncoder: boolean;
  readonly weightBytes: WeightBytes;
  /** Where the data of the tensors begins in the file. */
  readonly dataStart: number;
}

/** Is told of each tensor of a file. */
type OnTensor = (tensor: Tensor) => void;

/** Bytes of weights by where they are used. */
interface WeightBytes {
  /** Of all blocks together. */
  readonly blocks: number;
  /** The largest tensor in any block. */
  readonly largestInBlocks: number;
  /** Of the tensors that look a token up. */
  readonly embedding: number;
  /** Of the matrix that turns the last block's result into logits; 0 if the embedding serves as output, too. */
  readonly output: number;
}

/** Above what the largest mixtures of experts have, with one tensor per expert and layer. */
const MAX_TENSORS = 200_000;
/** ggml's GGML_MAX_NAME is 64, including the terminating zero. */
const MAX_NAME_LENGTH = 63;
/** ggml's GGML_MAX_DIMS. */
const MAX_DIMENSIONS = 4;
/** Length of an empty name, number of dimensions, type and offset. */
const MIN_TENSOR_BYTES = 24;
const DEFAULT_ALIGNMENT = 32;
/** Fewest bits per weight of any type; limits the number of weights of unknown types. */
const MIN_BITS_PER_WEIGHT = 1;
const RANK_HEAD = "cls.output.weight";
const IN_A_BLOCK = /^blk\.\d+\./;
/** llama.cpp's names for the parts of encoders, and of what leads from them to the model. */
const IN_AN_ENCODER = /^(?:v|a|mm)\./;

/**
 * Reads the tensor list that follows the keys, and checks that the tensors' data is inside the file, in the same order,
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
  /** Where the next tensor's data has to begin; undefined after a tensor of unknown type. */
  let next: number | undefined = 0;
  const bytes = { blocks: 0, largestInBlocks: 0, embedding: 0, output: 0 };
  for (let index = 0; index < count; index++) {
    const tensor = await readTensor(reader);
    onTensor?.(tensor);
    const { name, type, known, weights, offset, length } = tensor;
    if (names.has(name)) throw new InvalidGguf(`it has the tensor ${quoted(name)} twice`);
    names.add(name);
    if (next !== undefined && offset !== next) {
      throw new InvalidGguf(`it is damaged: the data of its tensor ${quoted(name)} is not where it belongs`);
    }
    next = known && Math.ceil((offset + length) / alignment) * alignment;
    if (name === RANK_HEAD) hasRankHead = true;
    if (IN_AN_ENCODER.test(name)) hasEncoder = true;
    parameters += weights;
    weightsByType.set(type, (weightsByType.get(type) ?? 0) + weights);
    dataLength = Math.max(dataLength, offset + length);
    if (IN_A_BLOCK.test(name)) {
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
  /** The row's length first. */
  readonly shape: readonly number[];
  readonly type: number;
  /** Undefined: an unknown type. */
  readonly known: GgmlType | undefined;
  readonly weights: number;
  /** Where its data begins, from the beginning of the data. */
  readonly offset: number;
  /** Bytes of its data. */
  readonly length: number;
}

async function readTensor(reader: ByteReader): Promise<Tensor> {
  const name = await readName(reader, MAX_NAME_LENGTH);
  const shape = await readShape(reader, name);
  const [row = 1, ...rest] = shape;
  await reader.need(12);
  const type = reader.u32();
  const offset = reader.u64();
  const known = GGML_TYPES.get(type);
  if (known && row % known.block !== 0) {
    throw new InvalidGguf(
      `its tensor ${quoted(name)} has rows of ${claimed(row)} weights, where ${known.name} has blocks of ${known.block}`,
    );
  }
  const weights = rest.reduce((product, size) => product * size, row);
  const length = tensorBytes(known, weights);
  if (!Number.isSafeInteger(offset + length)) {
    throw new InvalidGguf(`it is damaged: its tensor ${quoted(name)} claims impossibly many weights`);
  }
  return { name, shape, type, known, weights, offset, length };
}

async function readShape(reader: ByteReader, name: string): Promise<number[]> {
  await reader.need(4);
  const dimensions = reader.u32();
  if (dimensions > MAX_DIMENSIONS) {
    throw new InvalidGguf(`the tensor ${quoted(name)} has ${dimensions} dimensions`);
  }
  await reader.need(dimensions * 8);
  return Array.from({ length: dimensions }, () => reader.u64());
}

function tensorBytes(known: GgmlType | undefined, weights: number): number {
  if (!known) return Math.ceil((weights * MIN_BITS_PER_WEIGHT) / 8);
  return Math.ceil(weights / known.block) * known.bytes;
}

function mainType(weightsByType: ReadonlyMap<number, number>): string | undefined {
  const [most] = [...weightsByType].toSorted(([, a], [, b]) => b - a);
  return most && GGML_TYPES.get(most[0])?.name;
}
