import { open } from "node:fs/promises";
import { paddingOf } from "../../engine/quantize/quantize-job.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { InvalidGguf, quoted } from "../gguf/byte-reader.ts";
import { readGgufHeader, unusable } from "../gguf/inspect-gguf.ts";
import type { Metadata } from "../gguf/read-metadata.ts";
import { readAlignment, type Tensor } from "../gguf/read-tensors.ts";

const VERSION = 3;
/** GGUF value type of an unsigned 32-bit integer. */
const UINT32 = 4;
/** Version of the quantized formats, ggml's GGML_QNT_VERSION. */
const QUANTIZATION_VERSION = 2;

/** Keys that get new values, and those of shards, which the new file lacks. */
const DROPPED: ReadonlySet<string> = new Set([
  "general.quantization_version",
  "general.file_type",
  "split.no",
  "split.count",
  "split.tensors.count",
]);

interface WrittenTensor {
  readonly name: string;
  readonly shape: readonly number[];
  /** ggml's type number. */
  readonly type: number;
  readonly bytes: number;
}

/**
 * Writes the header of a quantized file, up to the aligned start of its data. Its bytes are identical to those of
 * llama-quantize: the unchanged keys of the first file, followed by those of the quantization.
 */
export async function writeHeader(
  { files, entries, alignment }: SourceLayout,
  tensors: readonly WrittenTensor[],
  fileType: number,
): Promise<Buffer> {
  const copied = entries.filter(({ key }) => !DROPPED.has(key));
  const parts = [
    Buffer.from("GGUF"),
    u32(VERSION),
    u64(tensors.length),
    u64(copied.length + 2),
    ...(await readParts(files[0]!, copied)),
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

export interface SourceTensor extends Tensor {
  /** Index in the list of files. */
  readonly file: number;
  /** Position of its data in that file. */
  readonly start: number;
}

export interface SourceLayout {
  readonly files: readonly string[];
  /** Metadata of the first file. */
  readonly metadata: Metadata;
  /** Keys of the first file in order, with the byte ranges of their entries. */
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
    const fileTensors: Tensor[] = [];
    const header = await readGgufHeader(path, {
      onTensor: (tensor) => fileTensors.push(tensor),
      ...(file === 0 && { onEntry: (key, start, end) => entries.push({ key, start, end }) }),
    });
    metadata ??= header.metadata;
    const { dataStart } = header.tensors;
    for (const tensor of fileTensors) tensors.push({ ...tensor, file, start: dataStart + tensor.offset });
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

/** Sorts by block, tensors outside of blocks first, then by the bytes of their names. */
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

type TensorRole =
  | "output"
  | "token-embedding"
  | "attention-value"
  | "attention-key"
  | "attention-output"
  | "ffn-down"
  | "other";

/** Roles by parts of names, in llama.cpp's order; the first part that a name contains decides. */
const ROLES: readonly (readonly [part: string, role: TensorRole])[] = [
  ["attn_qkv.weight", "attention-value"],
  ["attn_kv_b.weight", "attention-value"],
  ["attn_v.weight", "attention-value"],
  ["attn_k.weight", "attention-key"],
  ["attn_q.weight", "other"],
  ["attn_output.weight", "attention-output"],
  ["ffn_up", "other"],
  ["ffn_gate", "other"],
  ["ffn_down", "ffn-down"],
];

export const OUTPUT = "output.weight";

/** Returns the role of a tensor like tensor_get_category() of llama-quant.cpp. */
export function roleOf(name: string): TensorRole {
  if (name === OUTPUT) return "output";
  if (name === "token_embd.weight" || name === "per_layer_token_embd.weight") return "token-embedding";
  return ROLES.find(([part]) => name.includes(part))?.[1] ?? "other";
}

/** Parts of names of matrices that are not quantized: they are small, or quality depends on them. */
const UNQUANTIZED_NAME_PARTS: readonly string[] = [
  "_norm.weight",
  "ffn_gate_inp.weight",
  "ffn_gate_tid2eid.weight",
  "altup",
  "laurel",
  "per_layer_model_proj",
  "ssm_conv1d",
  "shortconv.conv.weight",
  "indexer.k_proj.weight",
  "indexer.q_proj.weight",
  "time_mix_first.weight",
  "time_mix_w0.weight",
  "time_mix_w1.weight",
  "time_mix_w2.weight",
  "time_mix_v0.weight",
  "time_mix_v1.weight",
  "time_mix_v2.weight",
  "time_mix_a0.weight",
  "time_mix_a1.weight",
  "time_mix_a2.weight",
  "time_mix_g1.weight",
  "time_mix_g2.weight",
  "time_mix_decay_w1.weight",
  "time_mix_decay_w2.weight",
  "time_mix_lerp_fused.weight",
  "attn_rel_b.weight",
  ".position_embd",
  "sam.pos_embd",
  "sam.neck.",
  "sam.net_",
  ".rel_pos",
  ".patch_embd",
  ".patch_merger",
  "a.rvq.codebook",
  "mm.a.code_embd",
];
const UNQUANTIZED_NAMES: ReadonlySet<string> = new Set(["position_embd.weight", "token_types.weight"]);

/** True if a tensor is quantized, like tensor_allows_quantization() of llama-quant.cpp. */
export function isQuantizable(name: string, shape: readonly number[]): boolean {
  return (
    dimensionsOf(shape) >= 2 &&
    name.endsWith("weight") &&
    !UNQUANTIZED_NAMES.has(name) &&
    !UNQUANTIZED_NAME_PARTS.some((part) => name.includes(part))
  );
}

/** Returns the number of dimensions without trailing ones of length 1, at least one. */
function dimensionsOf(shape: readonly number[]): number {
  return Math.max(1, shape.findLastIndex((length) => length > 1) + 1);
}
