import { ByteReader, type ByteSource, decodeText, InvalidGguf } from "./byte-reader.ts";
import { readMetadata, type Metadata, type OnEntry } from "./read-metadata.ts";
import { type OnTensor, readTensors, type TensorSums } from "./read-tensors.ts";

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
