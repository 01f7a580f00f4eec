import { PAGE_BUILD } from "../engine/browser/compat-build.ts";
import type { PageModelFiles } from "../engine/browser/start-page-engine.ts";
import { canAffordOwnContexts, chooseBatchSize } from "../engine/choose-engine-settings.ts";
import { engineHeapLimit } from "../engine/core/worker-patches.ts";
import { bytesPerStepToken, checkHeapLimit, estimateMemory } from "../engine/estimate-memory.ts";
import { type DawnGpu, describeAdapter, unusable } from "../engine/gpu/dawn.ts";
import type { GpuAdapter } from "../engine/gpu/gpu-report.ts";
import { type FoundGpu, offloadToGpu } from "../engine/gpu/offload-to-gpu.ts";
import { type EngineSpec, kvBytesPerToken } from "../engine/protocol/engine-spec.ts";
import { ServiceError } from "../errors/service-error.ts";
import { InvalidGguf } from "../models/gguf/byte-reader.ts";
import { type GgufHeader, readHeader } from "../models/gguf/read-tensors.ts";
import { summarizeHeaders } from "../models/gguf/summarize-headers.ts";
import { checkLoadSettings, choosePromptCache } from "../models/loading/choose-settings.ts";
import type { GgufSummary, ModelSettings } from "../models/model.ts";

/** Context of a request when nobody says how much, as in the daemon's configuration. */
const DEFAULT_CONTEXT = 4096;

/**
 * A page cannot ask how much memory there is. Own contexts for the slots take a sixteenth of this at most, and prompts that no
 * slot holds any more an eighth of what the model leaves of it.
 */
const ASSUMED_MEMORY_BYTES = 4 * 1024 ** 3;

/** What models.prompt_cache says in a daemon's configuration when nobody sets it. */
const CHOOSE = -1;

/** How a page wants its model to run. Absent: as the daemon would choose. */
export interface TabModelOptions {
  /** Tokens of context for each request. */
  readonly contextSize?: number | undefined;
  /** Requests that are answered at once; others wait. */
  readonly slots?: number | undefined;
  readonly threads?: number | undefined;
  /** Whether to use the browser's GPU where it has one. Default: false. */
  readonly gpu?: GpuWish | undefined;
}

/** A model as a page has it, before it is loaded. */
export interface TabModel {
  readonly alias: string;
  readonly files: PageModelFiles;
  readonly gguf: GgufSummary;
  readonly settings: ModelSettings;
  readonly spec: EngineSpec;
  readonly heapLimitBytes: number;
  readonly gpu: TabModelGpu;
}

/** The GPU that a page's model was placed on, or why it was not. */
interface TabModelGpu extends FoundGpu {
  readonly warning: string | undefined;
}

/**
 * Reads what a model's files say of it, without loading them.
 * @throws ServiceError invalid_model_file or insufficient_memory
 */
export async function readTabModel(
  alias: string,
  files: PageModelFiles,
  settings: ModelSettings,
  options: TabModelOptions,
): Promise<TabModel> {
  const gguf = await inspectBlobs(alias, files.model);
  if (gguf.auxiliary !== undefined)
    throw tabModelUnusable(alias, `it is not a model but a ${gguf.auxiliary}`);
  const others = files.adapters.map(({ blob }) => blob);
  if (files.projector) others.push(files.projector);
  const fileBytes = sizeOf([...files.model, ...others]);
  const onCpu = withPromptCache(chooseSpec(files, gguf, settings, options), gguf, fileBytes);
  const gpu = await findTabGpu(options.gpu ?? false);
  const { spec, warning } = await offloadToGpu(gpu, onCpu, gguf, {
    layers: gpu.settings.mode === "off" ? 0 : settings.gpuLayers,
    memory: 0,
    taken: 0,
    batchSize: 0,
    extraBytes: sizeOf(others),
  });
  // Of the engine on the CPU: where the GPU fails, all layers are there.
  const estimate = estimateMemory({ ...gguf, fileBytes, spec: onCpu });
  checkHeapLimit(estimate, PAGE_BUILD.heapBytes);
  // The script of the build for older browsers has its limit.
  const heapLimitBytes = PAGE_BUILD.isCompat
    ? PAGE_BUILD.heapBytes
    : engineHeapLimit(estimate.heapLimitBytes, PAGE_BUILD.heapBytes);
  return { alias, files, gguf, settings, spec, heapLimitBytes, gpu: { ...gpu, warning } };
}

/** Adds room for prompts that no slot holds any more. */
function withPromptCache(spec: EngineSpec, gguf: GgufSummary, fileBytes: number): EngineSpec {
  const promptCacheBytes = choosePromptCache({
    spec,
    kvBytesPerToken: kvBytesPerToken(gguf.kvBytesPerToken, spec),
    kernels: PAGE_BUILD.kernels,
    configured: CHOOSE,
    freeBytes: ASSUMED_MEMORY_BYTES - estimateMemory({ ...gguf, fileBytes, spec }).heapBytes,
  });
  return promptCacheBytes === undefined ? spec : { ...spec, promptCacheBytes };
}

function sizeOf(blobs: readonly Blob[]): number {
  return blobs.reduce((sum, { size }) => sum + size, 0);
}

async function inspectBlobs(alias: string, blobs: readonly Blob[]): Promise<GgufSummary> {
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
      ? tabModelUnusable(alias, error.message, error)
      : tabModelUnusable(alias, "it cannot be read", error);
  }
}

function tabModelUnusable(alias: string, why: string, cause?: unknown): ServiceError {
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
  const wished = { purpose, contextSize, slots };
  const { load } = settings;
  checkLoadSettings(load, gguf);
  const contextShift = load.contextShift === true && purpose === "generate";
  const perToken = kvBytesPerToken(gguf.kvBytesPerToken, load);
  return {
    ...load,
    ...wished,
    modelFiles: files.model.map((_, index) => `model-${index}`),
    ...(files.projector && { projectorFile: "projector" }),
    adapters: files.adapters.map(({ scale }, index) => ({ path: `adapter-${index}`, scale })),
    sharedContext:
      !contextShift &&
      !canAffordOwnContexts({ ...wished, kvBytesPerToken: perToken, memory: ASSUMED_MEMORY_BYTES }),
    gpuLayers: 0,
    threads,
    batchSize:
      load.batchSize ??
      chooseBatchSize({
        ...wished,
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
 * A page sees logical processors, of which most cores have two, and shares them with the browser. Without isolation from
 * other origins it has no threads at all.
 */
function chooseTabThreads(): number {
  if (!globalThis.crossOriginIsolated) return 1;
  return Math.max(1, Math.floor(navigator.hardwareConcurrency / 2));
}

/** Whether a page wants the browser's GPU; "software": also one that computes on the CPU, as tests do. */
type GpuWish = boolean | "software";

/** Looks for the GPU that a browser offers to pages. Drivers of pages are in a process of the browser's own. */
export async function findTabGpu(
  wish: GpuWish,
  scope: { navigator: object } = globalThis,
): Promise<FoundGpu> {
  const found = { adapter: undefined, problem: undefined, ...(wish !== false && (await look(wish, scope))) };
  return { ...found, settings: { mode: wish === false ? "off" : "auto" }, ready: Promise.resolve() };
}

async function look(
  wish: true | "software",
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
  // Most browsers keep the description to themselves.
  const name = description || [vendor, architecture].filter(Boolean).join(" ") || "GPU";
  const adapter = describeAdapter({ backend: "webgpu", name }, found);
  const problem = unusable(adapter);
  if (problem !== undefined) return { problem: `${name}: ${problem}` };
  if (adapter.software && wish !== "software")
    return {
      problem: `The only adapter, ${name}, computes on the CPU, more slowly than models run without it.`,
    };
  return { adapter };
}

function webGpuOf(navigator: object): DawnGpu | undefined {
  return (navigator as { readonly gpu?: DawnGpu }).gpu;
}
