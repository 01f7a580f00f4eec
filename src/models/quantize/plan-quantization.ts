import { FROM_F32, TO_F32 } from "../../../wasm/quantizer-image.ts";
import { bytesOf, paddingOf, type QuantizeJob, type TensorJob } from "../../engine/quantize/quantize-job.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { InvalidGguf, quoted } from "../gguf/byte-reader.ts";
import { GGML_TYPES, ggmlTypeNumber } from "../gguf/ggml-types.ts";
import { unusable } from "../gguf/inspect-gguf.ts";
import { readHeader } from "../gguf/read-tensors.ts";
import type { Metadata } from "../gguf/read-metadata.ts";
import { summarizeHeaders } from "../gguf/summarize-headers.ts";
import type { GgufSummary } from "../model.ts";
import { FILE_TYPES, type FileType } from "./quantize-options.ts";
import { readLayout, type SourceLayout, type SourceTensor, writeHeader } from "./write-header.ts";
import { chooseTypes, type QuantizedArchitecture, IncompatibleRows } from "./tensor-types.ts";

export interface QuantizationPlan {
  /** Header of the new file, up to the tensor data. */
  readonly header: Buffer;
  readonly job: Omit<QuantizeJob, "threads">;
  /** Bytes of the new file. */
  readonly fileSize: number;
  readonly summary: GgufSummary;
  readonly sourceBytes: number;
  readonly bitsPerWeight: number;
  /** Number of tensors with a fallback type, because the requested one does not fit their rows. */
  readonly fallbackTensors: number;
}

const FLOATS: ReadonlySet<string> = new Set(["F32", "F16", "BF16"]);

/**
 * Plans the quantization of a model.
 * @param files real paths of all shards in order
 * @param mayRequantize allows quantized weights to be quantized again
 * @throws ServiceError invalid_model_file, unsupported_feature for tensors that cannot be converted, or
 *   invalid_parameter for a quantization that does not fit the model
 */
export async function planQuantization(
  files: readonly [string, ...string[]],
  fileType: FileType,
  mayRequantize: boolean,
): Promise<QuantizationPlan> {
  const layout = await readLayout(files);
  const { tensors, alignment } = layout;
  const chosen = chosenTypes(layout, fileType);
  const jobs = tensors.map((tensor, at) => toJob(tensor, chosen[at]!.type, mayRequantize));
  const written = jobs.map(({ weights, to }, at) => {
    const { name, shape } = tensors[at]!;
    return { name, shape, type: to.type, bytes: bytesOf(weights, to) };
  });
  const header = await writeHeader(layout, written, fileType.number);
  const bytes = written.map((each) => each.bytes);
  const fileSize = header.length + sum(bytes.map((each) => each + paddingOf(each, alignment)));
  return {
    header,
    job: { files, tensors: jobs, alignment },
    fileSize,
    summary: await summarize(header, fileSize),
    sourceBytes: sum(jobs.map(({ weights, from }) => bytesOf(weights, from))),
    bitsPerWeight: (sum(bytes) * 8) / sum(jobs.map(({ weights }) => weights)),
    fallbackTensors: chosen.filter(({ isFallback }) => isFallback).length,
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

function chosenTypes(layout: SourceLayout, fileType: FileType): ReturnType<typeof chooseTypes> {
  const named = layout.tensors.map((tensor) => ({ ...tensor, type: tensor.typeInfo?.name ?? "" }));
  const model = modelOf(layout.metadata);
  try {
    return chooseTypes(named, model, fileType);
  } catch (error) {
    if (error instanceof InvalidGguf) throw unusable(layout.files[0], error);
    if (!(error instanceof IncompatibleRows)) throw error;
    const usable = FILE_TYPES.filter((other) => {
      try {
        return chooseTypes(named, model, other);
      } catch {
        return false;
      }
    });
    throw new ServiceError(
      "invalid_parameter",
      `${fileType.name} cannot be used for this model, because ${error.message}; choose one of ${usable.map(({ name }) => name).join(", ")}.`,
      { param: "quantization" },
    );
  }
}

function modelOf(metadata: Metadata): QuantizedArchitecture {
  const named = metadata.get("general.architecture");
  const architecture = typeof named === "string" ? named : "";
  const first = (key: string): number | undefined => {
    const value = metadata.get(`${architecture}.${key}`);
    if (typeof value === "number") return value;
    return typeof value === "object" ? value.numbers?.[0] : undefined;
  };
  const heads = first("attention.head_count") ?? 0;
  const keys = first("attention.head_count_kv") ?? heads;
  return {
    architecture,
    blocks: first("block_count") ?? 0,
    experts: first("expert_count") ?? 0,
    headsPerKey: keys > 0 ? Math.floor(heads / keys) : 0,
  };
}

function toJob(tensor: SourceTensor, target: string, mayRequantize: boolean): TensorJob {
  const { name, typeInfo, file, start, weights } = tensor;
  if (!typeInfo) {
    throw unsupported(`its tensor ${quoted(name)} has the type ${tensor.type}, which is not known here`);
  }
  const toType = ggmlTypeNumber(target);
  const { block, bytes } = GGML_TYPES.get(toType)!;
  if (typeInfo.name !== target) {
    if (!FLOATS.has(typeInfo.name) && !mayRequantize) {
      throw unsupported(
        `its tensor ${quoted(name)} is quantized already (${typeInfo.name}), and quantizing again costs quality; start from a model in F32, F16 or BF16, or set allow_requantize`,
      );
    }
    const canConvert = (tensor.type === 0 || TO_F32.has(tensor.type)) && FROM_F32.has(toType);
    if (!canConvert) throw unsupported(`its tensor ${quoted(name)} has the type ${typeInfo.name}`);
  }
  return {
    file,
    offset: start,
    weights,
    from: { type: tensor.type, weights: typeInfo.block, bytes: typeInfo.bytes },
    to: { type: toType, weights: block, bytes },
  };
}

function unsupported(reason: string): ServiceError {
  return new ServiceError("unsupported_feature", `The model cannot be quantized: ${reason}.`);
}

async function summarize(header: Buffer, fileSize: number): Promise<GgufSummary> {
  const source = {
    read: async (target: Uint8Array, position: number) => {
      const part = header.subarray(position, position + target.length);
      target.set(part);
      return part.length;
    },
  };
  return summarizeHeaders([await readHeader(source, fileSize)]);
}
