import { formatMebibytes } from "../../json/quantities.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { contextTokens, type EngineSpec, kvBytesPerToken } from "../protocol/engine-spec.ts";
import { type GpuModel, gpuNeeds, layersThatFit, outputBytes, usableMemory } from "./gpu-memory.ts";
import {
  type GpuAdapter,
  type GpuDevice,
  type GpuReport,
  isSameDevice,
  type ReportedAdapter,
} from "./gpu-report.ts";

export interface GpuPreferences {
  /** Layers that the user requests: 0 for none, -1 for all; absent: according to the configuration. */
  readonly layers?: number | undefined;
  /** Bytes of GPU memory that all models together may use; 0: depends on the GPU. */
  readonly memory: number;
  /** Bytes of GPU memory that other models use. */
  readonly usedByOthers: number;
  /** Prompt tokens per step; 0: depends on the GPU. */
  readonly batchSize: number;
  /** False: recorded graphs are not replayed. */
  readonly replay?: boolean;
  /** Bytes of the projector and of adapters, which go to the GPU with the layers. */
  readonly extraBytes: number;
}

/** auto: use a GPU if there is one; off: never use one; require: do not load models without one. */
export type GpuMode = "auto" | "off" | "require";

export interface FoundGpu {
  readonly settings: { readonly mode: GpuMode };
  /** Resolves when the search is done; never rejects. */
  readonly ready: Promise<void>;
  /** The adapter that models use. */
  readonly adapter: GpuAdapter | undefined;
  /** Explains why there is none; undefined when there is one. */
  readonly problem: string | undefined;
}

export interface GpuPlacement {
  readonly spec: EngineSpec;
  /** Message for the user when other layers are offloaded than requested. */
  readonly warning?: string | undefined;
}

/**
 * Decides how many layers of a model go to the GPU.
 * @throws ServiceError gpu_unavailable or insufficient_memory when a GPU is required
 */
export async function offloadToGpu(
  finder: FoundGpu,
  { gpu: _none, ...spec }: EngineSpec,
  model: GpuModel,
  preferences: GpuPreferences,
): Promise<GpuPlacement> {
  const onCpu: EngineSpec = { ...spec, gpuLayers: 0 };
  const { mode } = finder.settings;
  if (preferences.layers === 0 || (preferences.layers === undefined && mode === "off"))
    return { spec: onCpu };
  await finder.ready;
  const { adapter, problem } = finder;
  if (!adapter) {
    if (mode === "require") {
      throw new ServiceError("gpu_unavailable", `The configuration requires a GPU. ${problem}`);
    }
    if (preferences.layers === undefined) return { spec: onCpu };
    return {
      spec: onCpu,
      warning: `The model stays on the CPU, although GPU layers were requested. ${problem}`,
    };
  }
  const step = gpuBatchSize(adapter, model, spec);
  const obstacle =
    step === undefined
      ? `The model is too large for ${title(adapter)}, which computes on the CPU: each step would take more than 10 s.`
      : tensorTooLargeMessage(adapter, model, spec);
  if (step === undefined || obstacle !== undefined) {
    if (mode === "require") throw new ServiceError("gpu_unavailable", `${obstacle}`);
    return { spec: onCpu, warning: `The model stays on the CPU. ${obstacle}` };
  }
  const batchSize = preferences.batchSize > 0 && spec.purpose === "generate" ? preferences.batchSize : step;
  const all = model.blockCount + 1;
  const requestedLayers =
    preferences.layers === undefined || preferences.layers < 0 ? all : Math.min(preferences.layers, all);
  const { fittingLayers, warning } = layersInMemory(adapter, model, { ...spec, batchSize }, preferences);
  if (requestedLayers > fittingLayers && mode === "require")
    throw new ServiceError("insufficient_memory", warning);
  const layers = Math.min(requestedLayers, fittingLayers);
  if (layers === 0) return { spec: onCpu, warning };
  return {
    spec: {
      ...spec,
      // llama.cpp may count layers differently, so "all" is passed on as such.
      gpuLayers: layers === all ? -1 : layers,
      gpu: {
        backend: adapter.backend,
        name: adapter.name,
        layers: all,
        batchSize,
        ...(preferences.replay === false && { replay: false }),
      },
    },
    warning: requestedLayers > fittingLayers ? warning : outputOnCpuWarning(adapter, model),
  };
}

/** Number of layers that fit into the memory of the adapter, and the message for a model that has more. */
function layersInMemory(
  adapter: GpuAdapter,
  model: GpuModel,
  spec: EngineSpec,
  { memory: configured, usedByOthers, extraBytes }: GpuPreferences,
): { readonly fittingLayers: number; readonly warning: string } {
  const all = model.blockCount + 1;
  const { work, ...needs } = gpuNeeds(model, spec, spec.batchSize);
  const memory = usableMemory(adapter, configured);
  const fittingLayers = layersThatFit(
    { ...needs, work: work + extraBytes },
    model.blockCount,
    memory - usedByOthers,
  );
  const whose = configured > 0 ? " (gpu.memory)" : "";
  const budget = `the ${mib(memory)} of ${title(adapter)} that models may use${whose}`;
  const warning =
    usedByOthers > 0
      ? `Only ${fittingLayers} of its ${all} layers fit into ${budget}, since other models use ${mib(usedByOthers)}; ` +
        "unload one, or use a smaller context or a smaller quantization."
      : `Only ${fittingLayers} of its ${all} layers fit into ${budget}; use a smaller context or a smaller quantization.`;
  return { fittingLayers, warning };
}

/**
 * Explains why tensors are too large for the GPU; undefined when they are not. A shader binds complete tensors: weights
 * that are too large to bind are computed on the CPU, in every layer; with a too large KV cache, llama.cpp aborts.
 */
function tensorTooLargeMessage(
  { limits, ...adapter }: GpuAdapter,
  { weightBytes, kvBytesPerToken: kvBytesAtF16, blockCount }: GpuModel,
  spec: EngineSpec,
): string | undefined {
  const maxBytes = limits.maxStorageBufferBindingSize;
  if (maxBytes === 0) return undefined;
  const limit = `A shader on ${title(adapter)} can access at most ${mib(maxBytes)} at once`;
  if (weightBytes.largestInBlocks > maxBytes) {
    return `${limit}, but each layer has a tensor of ${mib(weightBytes.largestInBlocks)}; use a smaller quantization.`;
  }
  // Keys and values are separate tensors.
  const bytes = [spec.cacheTypeK, spec.cacheTypeV].map(
    (type) => kvBytesPerToken(kvBytesAtF16, { cacheTypeK: type, cacheTypeV: type }) / 2,
  );
  const cache = (Math.max(...bytes) / Math.max(1, blockCount)) * contextTokens(spec);
  return cache > maxBytes
    ? `${limit}, but the KV cache of each layer has ${mib(cache)}; use a smaller context.`
    : undefined;
}

/** Warning for an output layer that is too large to bind, which costs less because there is only one. */
function outputOnCpuWarning({ limits, ...adapter }: GpuAdapter, model: GpuModel): string | undefined {
  const maxBytes = limits.maxStorageBufferBindingSize;
  if (maxBytes === 0 || outputBytes(model) <= maxBytes) return undefined;
  return `The output layer of ${mib(outputBytes(model))} stays on the CPU, which makes each token slower: a shader on ${title(adapter)} can access at most ${mib(maxBytes)} at once.`;
}

function mib(bytes: number): string {
  return formatMebibytes(bytes, Math.floor);
}

export type AdapterChoice =
  | { readonly adapter: GpuAdapter }
  /** Explains why there is none, and what to do. */
  | { readonly problem: string };

/**
 * Picks the adapter for all models. A software adapter is used only when it is named: it computes on the CPU, more
 * slowly than llama.cpp's CPU kernels.
 * @param name part of the name or description of the adapter; undefined or empty: the best one
 */
export function chooseAdapter(report: GpuReport, name?: string): AdapterChoice {
  if (report.adapters.length === 0) return { problem: report.problem ?? "No GPU was found." };
  const requestedName = name === "" ? undefined : name;
  const named =
    requestedName === undefined
      ? report.adapters
      : report.adapters.filter((each) => matchesName(each, requestedName));
  if (named.length === 0) {
    return {
      problem: `No adapter matches "${requestedName}"; available: ${report.adapters.map(title).join("; ")}.`,
    };
  }
  const usable = named.filter(isUsable);
  const candidates = requestedName === undefined ? usable.filter(({ software }) => !software) : usable;
  const { fastest } = report;
  const adapter = candidates.find((each) => fastest && isSameDevice(each, fastest)) ?? candidates[0];
  if (adapter) return { adapter };
  const problems = named.filter((each) => !isUsable(each)).map((each) => `${title(each)}: ${each.problem}`);
  const [software] = usable;
  if (!software) return { problem: problems.join(" ") };
  // Without versions, as in "llvmpipe (LLVM 15.0.6, 256 bits)": daybreak gpu shows them.
  const softwareName = software.name.replace(/ \(.*\)$/, "");
  const slow = `${softwareName}, computes on the CPU itself, and more slowly`;
  return {
    problem:
      problems.length > 0
        ? `${problems.join(" ")} The only other adapter, ${slow}; it is used only when gpu.adapter names it.`
        : `The only adapter, ${slow}. If there is a GPU, install its driver; to use ${softwareName} anyway, name it in gpu.adapter.`,
  };
}

function isUsable(adapter: ReportedAdapter): adapter is GpuAdapter {
  return adapter.problem === undefined && "features" in adapter;
}

function matchesName(adapter: ReportedAdapter, name: string): boolean {
  const description = "description" in adapter ? adapter.description : "";
  return `${adapter.name}\n${description}`.toLowerCase().includes(name.toLowerCase());
}

/** "NVIDIA GeForce RTX 4070 (vulkan)" */
export function title({ name, backend }: GpuDevice): string {
  return `${name} (${backend})`;
}

/** Prompt tokens per step: llama.cpp's default; larger steps are hardly faster. */
const GPU_STEP = 512;

/** The same on a software adapter, where larger steps are not faster. */
const SOFTWARE_STEP = 16;

/** Minimum of weights times tokens that a software adapter computes per second. */
const SOFTWARE_WEIGHT_TOKENS = 0.8e9;

/** Longest step: cancellation and the tokens of other slots wait for it. */
const MAX_STEP_SECONDS = 10;

/**
 * Prompt tokens per step on a GPU; undefined when the adapter is so slow that even the smallest possible step takes too
 * long.
 */
function gpuBatchSize(
  { software }: GpuAdapter,
  { parameters }: GpuModel,
  { purpose, contextSize, slots, batchSize }: EngineSpec,
): number | undefined {
  // A text to embed or rerank cannot be split.
  const unsplitText = purpose === "generate" ? undefined : batchSize;
  // Decoding comes first, so a step must have more tokens than there are slots.
  const minTokens = unsplitText ?? slots + 1;
  if (!software) return unsplitText ?? Math.max(minTokens, Math.min(GPU_STEP, contextSize));
  const acceptable = Math.floor((SOFTWARE_WEIGHT_TOKENS * MAX_STEP_SECONDS) / Math.max(1, parameters));
  if (acceptable < minTokens) return undefined;
  return unsplitText ?? Math.max(minTokens, Math.min(SOFTWARE_STEP, acceptable, contextSize));
}
