import { open } from "node:fs/promises";
import { paddingOf } from "../../engine/quantize/quantize-job.ts";
import { dimensionsOf } from "./tensor-roles.ts";
import type { SourceLayout } from "./source-layout.ts";

const VERSION = 3;
/** Number of an unsigned integer of 32 bits among the types of values. */
const UINT32 = 4;
/** Version of the layout of quantized blocks, ggml's GGML_QNT_VERSION. */
const QUANTIZATION_VERSION = 2;

/** Keys that are written anew, and those of shards, which the result does not have. */
const DROPPED: ReadonlySet<string> = new Set([
  "general.quantization_version",
  "general.file_type",
  "split.no",
  "split.count",
  "split.tensors.count",
]);

/** A tensor of the result. */
interface WrittenTensor {
  readonly name: string;
  readonly shape: readonly number[];
  /** ggml's number. */
  readonly type: number;
  readonly bytes: number;
}

/**
 * Writes the head of a quantized file, up to the aligned beginning of its data, with the bytes that llama-quantize writes:
 * the keys of the first file as they are, and then those of the quantization.
 * @param fileType `general.file_type`
 */
export async function writeHeader(
  { files, entries, alignment }: SourceLayout,
  tensors: readonly WrittenTensor[],
  fileType: number,
): Promise<Buffer> {
  const kept = entries.filter(({ key }) => !DROPPED.has(key));
  const parts = [
    Buffer.from("GGUF"),
    u32(VERSION),
    u64(tensors.length),
    u64(kept.length + 2),
    ...(await readParts(files[0]!, kept)),
    ...entry("general.quantization_version", QUANTIZATION_VERSION),
    ...entry("general.file_type", fileType),
  ];
  let offset = 0;
  for (const { name, shape, type, bytes } of tensors) {
    const dimensions = dimensionsOf(shape);
    const lengths = Array.from({ length: dimensions }, (_, at) => u64(shape[at] ?? 1));
    parts.push(text(name), u32(dimensions), ...lengths, u32(type), u64(offset));
    offset += bytes + paddingOf(bytes, alignment);
  }
  const head = Buffer.concat(parts);
  return Buffer.concat([head, Buffer.alloc(paddingOf(head.length, alignment))]);
}

async function readParts(
  file: string,
  parts: readonly { readonly start: number; readonly end: number }[],
): Promise<Buffer[]> {
  const [first, last] = [parts[0], parts.at(-1)];
  if (!first || !last) return [];
  const all = Buffer.alloc(last.end - first.start);
  await using handle = await open(file);
  for (let done = 0; done < all.length;) {
    const { bytesRead } = await handle.read(all, done, all.length - done, first.start + done);
    if (bytesRead === 0) throw new RangeError(`${file} has become shorter`);
    done += bytesRead;
  }
  return parts.map(({ start, end }) => all.subarray(start - first.start, end - first.start));
}

function entry(key: string, value: number): Buffer[] {
  return [text(key), u32(UINT32), u32(value)];
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([u64(bytes.length), bytes]);
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}
