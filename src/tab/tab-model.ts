import { PAGE_BUILD } from "../engine/browser/compat-build.ts";
import type { PageModelFiles } from "../engine/browser/start-page-engine.ts";
import { canAffordContextPerSlot, chooseBatchSize } from "../engine/choose-engine-settings.ts";
import { engineHeapLimit } from "../engine/core/worker-patches.ts";
import { bytesPerStepToken, checkHeapLimit, estimateMemory } from "../engine/estimate-memory.ts";
import { type DawnGpu, describeAdapter, unusableReason } from "../engine/gpu/dawn.ts";
import type { GpuAdapter } from "../engine/gpu/gpu-report.ts";
import { type FoundGpu, offloadToGpu } from "../engine/gpu/offload-to-gpu.ts";
import { type EngineSpec, kvBytesPerToken } from "../engine/protocol/engine-spec.ts";
import { ServiceError } from "../errors/service-error.ts";
import { InvalidGguf } from "../models/gguf/byte-reader.ts";
import { type GgufHeader, readHeader } from "../models/gguf/read-tensors.ts";
import { summarizeHeaders } from "../models/gguf/summarize-headers.ts";
import { checkLoadSettings, choosePromptCache } from "../models/loading/choose-settings.ts";
import type { GgufSummary, ModelSettings } from "../models/model.ts";

/** Default context size in tokens, the same as in the daemon's configuration. */
const DEFAULT_CONTEXT = 4096;

/**
 * Assumed memory of the machine, which a page cannot read. Separate contexts of the slots may take a sixteenth of it,
 * and the prompt cache an eighth of what the model leaves free.
 */
const ASSUMED_MEMORY_BYTES = 4 * 1024 ** 3;

/** Default of models.prompt_cache in the daemon's configuration: choose the size automatically. */
const AUTOMATIC_PROMPT_CACHE = -1;

/** Options for running a model in a page. Absent options are chosen as in the daemon. */
export interface TabModelOptions {
  /** Context size per request, in tokens. */
  readonly contextSize?: number | undefined;
  /** Number of requests that run concurrently; others wait. */
  readonly slots?: number | undefined;
  readonly threads?: number | undefined;
  /** True to use the browser's GPU, if it has one. Default: false. */
  readonly gpu?: GpuPreference | undefined;
}

/** A model of a page, ready to be loaded. */
export interface TabModel {
  readonly alias: string;
  readonly files: PageModelFiles;
  readonly gguf: GgufSummary;
  readonly settings: ModelSettings;
  readonly spec: EngineSpec;
  readonly heapLimitBytes: number;
  readonly gpu: TabModelGpu;
}

/** The GPU for a page's model, or the reason why there is none. */
interface TabModelGpu extends FoundGpu {
  readonly warning: string | undefined;
}

/**
 * Reads the headers of a model's files, and plans its engine.
 * @throws ServiceError invalid_model_file or insufficient_memory
 */
export async function readTabModel(
  alias: string,
  files: PageModelFiles,
  settings: ModelSettings,
  options: TabModelOptions,
): Promise<TabModel> {
  const gguf = await summarizeBlobs(alias, files.model);
  if (gguf.auxiliary !== undefined) throw unusableModel(alias, `it is not a model but a ${gguf.auxiliary}`);
  const others = files.adapters.map(({ blob }) => blob);
  if (files.projector) others.push(files.projector);
  const fileBytes = sizeOf([...files.model, ...others]);
  const onCpu = withPromptCache(chooseSpec(files, gguf, settings, options), gguf, fileBytes);
  const gpu = await findTabGpu(options.gpu ?? false);
  const { spec, warning } = await offloadToGpu(gpu, onCpu, gguf, {
    layers: gpu.settings.mode === "off" ? 0 : settings.gpuLayers,
    memory: 0,
    usedByOthers: 0,
    batchSize: 0,
    extraBytes: sizeOf(others),
  });
  // The memory estimate is that of an engine on the CPU, since all layers move there if the GPU fails.
  const estimate = estimateMemory({ ...gguf, fileBytes, spec: onCpu });
  checkHeapLimit(estimate, PAGE_BUILD.heapBytes);
  // The build for older browsers has a fixed limit.
  const heapLimitBytes = PAGE_BUILD.isCompat
    ? PAGE_BUILD.heapBytes
    : engineHeapLimit(estimate.heapLimitBytes, PAGE_BUILD.heapBytes);
  return { alias, files, gguf, settings, spec, heapLimitBytes, gpu: { ...gpu, warning } };
}

/** Adds memory for cached prompts, if some is free. */
function withPromptCache(spec: EngineSpec, gguf: GgufSummary, fileBytes: number): EngineSpec {
  const promptCacheBytes = choosePromptCache({
    spec,
    kvBytesPerToken: kvBytesPerToken(gguf.kvBytesPerToken, spec),
    kernels: PAGE_BUILD.kernels,
    configured: AUTOMATIC_PROMPT_CACHE,
    freeBytes: ASSUMED_MEMORY_BYTES - estimateMemory({ ...gguf, fileBytes, spec }).heapBytes,
  });
  return promptCacheBytes === undefined ? spec : { ...spec, promptCacheBytes };
}

function sizeOf(blobs: readonly Blob[]): number {
  return blobs.reduce((sum, { size }) => sum + size, 0);
}

async function summarizeBlobs(alias: string, blobs: readonly Blob[]): Promise<GgufSummary> {
  const headers: GgufHeader[] = [];
  try {
    for (const blob of blobs) {
      const read = async (target: Uint8Array, position: number): Promise<number> => {
        const bytes = await blob.slice(position, position + target.length).arrayBuffer();
        target.set(new Uint8Array(bytes));
        return bytes.byteLength;
      };
      headers.push(await readHeader({ read }, blob.size));
    }
    const [first, ...others] = headers;
    if (!first) throw new InvalidGguf("it has no files");
    return summarizeHeaders([first, ...others]);
  } catch (error) {
    throw error instanceof InvalidGguf
      ? unusableModel(alias, error.message, error)
      : unusableModel(alias, "it cannot be read", error);
  }
}

function unusableModel(alias: string, why: string, cause?: unknown): ServiceError {
  return new ServiceError("invalid_model_file", `The model "${alias}" cannot be used: ${why}.`, { cause });
}

function chooseSpec(
  files: PageModelFiles,
  gguf: GgufSummary,
  settings: ModelSettings,
  options: TabModelOptions,
): EngineSpec {
  const { purpose, parameters, contextLength } = gguf;
  const contextSize =
    options.contextSize ??
    settings.contextSize ??
    Math.min(DEFAULT_CONTEXT, contextLength || DEFAULT_CONTEXT);
  const slots = options.slots ?? 1;
  const threads = options.threads ?? chooseTabThreads();
  const requested = { purpose, contextSize, slots };
  const { load } = settings;
  checkLoadSettings(load, gguf);
  const contextShift = load.contextShift === true && purpose === "generate";
  const perToken = kvBytesPerToken(gguf.kvBytesPerToken, load);
  return {
    ...load,
    ...requested,
    modelFiles: files.model.map((_, index) => `model-${index}`),
    ...(files.projector && { projectorFile: "projector" }),
    adapters: files.adapters.map(({ scale }, index) => ({ path: `adapter-${index}`, scale })),
    sharedContext:
      !contextShift &&
      !canAffordContextPerSlot({ ...requested, kvBytesPerToken: perToken, memory: ASSUMED_MEMORY_BYTES }),
    gpuLayers: 0,
    threads,
    batchSize:
      load.batchSize ??
      chooseBatchSize({
        ...requested,
        parameters,
        threads,
        bytesPerStepToken: bytesPerStepToken(gguf, contextSize),
        kernels: PAGE_BUILD.kernels,
      }),
    flashAttention: load.flashAttention ?? "auto",
    ...(settings.template !== undefined && { chatTemplate: settings.template }),
    contextShift,
  };
}

/**
 * Returns half of the logical processors, since most cores have two and the browser needs some. Threads require
 * cross-origin isolation.
 */
function chooseTabThreads(): number {
  if (!globalThis.crossOriginIsolated) return 1;
  return Math.max(1, Math.floor(navigator.hardwareConcurrency / 2));
}

/** True to use the browser's GPU. "software" also allows an adapter that computes on the CPU, for tests. */
type GpuPreference = boolean | "software";

/**
 * Finds the GPU that the browser offers to pages. Needs no guard process: browsers run GPU drivers in a process of
 * their own.
 */
export async function findTabGpu(
  preference: GpuPreference,
  scope: { navigator: object } = globalThis,
): Promise<FoundGpu> {
  const found = {
    adapter: undefined,
    problem: undefined,
    ...(preference !== false && (await findAdapter(preference, scope))),
  };
  return { ...found, settings: { mode: preference === false ? "off" : "auto" }, ready: Promise.resolve() };
}

async function findAdapter(
  preference: true | "software",
  scope: { navigator: object },
): Promise<{ readonly adapter: GpuAdapter } | { readonly problem: string }> {
  const gpu = webGpuOf(scope.navigator);
  if (!gpu) return { problem: "This browser has no WebGPU; a newer version may have it." };
  const found = await gpu.requestAdapter({ powerPreference: "high-performance" }).catch(() => null);
  if (!found)
    return {
      problem: "This browser has WebGPU, but no GPU for it: there is none, or it does not use its driver.",
    };
  const { vendor, architecture, description } = found.info;
  // Most browsers hide the description.
  const name = description || [vendor, architecture].filter(Boolean).join(" ") || "GPU";
  const adapter = describeAdapter({ backend: "webgpu", name }, found);
  const problem = unusableReason(adapter);
  if (problem !== undefined) return { problem: `${name}: ${problem}` };
  if (adapter.software && preference !== "software")
    return {
      problem: `The only adapter, ${name}, computes on the CPU, more slowly than models run without it.`,
    };
  return { adapter };
}

function webGpuOf(navigator: object): DawnGpu | undefined {
  return (navigator as { readonly gpu?: DawnGpu }).gpu;
}
