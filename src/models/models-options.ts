import type { Logger } from "pino";
import type { Config } from "../config/schema.ts";
import type { StartEngine } from "../engine/engine.ts";
import type { Processors } from "../engine/machine-limits.ts";
import type { Kernels } from "../engine/engine-image.ts";
import type { QuantizeTensors } from "../engine/quantize/quantize-tensors.ts";
import type { EngineSpec } from "../engine/protocol/engine-spec.ts";
import type { TryTemplate } from "../engine/try-template.ts";
import type { ServiceEvents } from "../events/service-events.ts";
import type { InspectGguf } from "./gguf/inspect-gguf.ts";
import type { FreeSpace } from "../files/file-operations.ts";
import type { DiskHubStore } from "./hub/disk-hub-store.ts";
import type { Clock, MachineMemory } from "./loading/available-memory.ts";
import type { GgufSummary } from "./model.ts";
import type { NameResolver } from "./names/name-resolver.ts";
import type { StateFile } from "./registry/state-file.ts";

/** Estimates an upper bound of the bytes that an engine with this specification needs. */
export type EstimateMemory = (gguf: GgufSummary, spec: EngineSpec) => number;

/**
 * Decides how many layers of a model are offloaded to the GPU.
 * @param takenBytes GPU memory reserved for other models
 */
export type OffloadLayers = (
  gguf: GgufSummary,
  spec: EngineSpec,
  requestedLayers: number | undefined,
  takenBytes: number,
) => Promise<{ readonly spec: EngineSpec; readonly warning?: string | undefined }>;

/** Memory of engines on the machine and its GPU. */
export interface EngineMemory {
  readonly estimate: EstimateMemory;
  /** Maximum bytes of an engine's WebAssembly memory; absent: no separate limit. */
  readonly heapLimit?: EstimateMemory;
  readonly estimateGpu: EstimateMemory;
  /** Bytes of GPU memory that all engines together may use; Infinity while the total is unknown. */
  readonly gpuBudget: () => number;
  readonly offloadLayers: OffloadLayers;
  /** Reads the machine's current memory; absent: only the configured budget limits models. */
  readonly machine?: () => MachineMemory;
}

/** Dependencies of the models service: configuration, engines, the hub and the machine. */
export interface ModelsOptions {
  readonly config: Pick<Config, "models" | "engine" | "cache_dir">;
  readonly startEngine: StartEngine;
  readonly memory: EngineMemory;
  /** Renders the chat templates of new Modelfiles as a test; absent: errors appear only when the model is loaded. */
  readonly tryTemplate?: TryTemplate;
  readonly quantizeTensors: QuantizeTensors;
  /** Measures free disk space; absent: asks the system. */
  readonly measureSpace?: FreeSpace;
  readonly hub: DiskHubStore;
  readonly resolver: NameResolver;
  readonly shippedDir: string;
  readonly events: Pick<ServiceEvents, "emit">;
  readonly logger: Pick<Logger, "debug" | "warn">;
  readonly clock?: Clock;
  readonly processors?: Processors;
  /** Kernels in use; faster ones process a prompt in larger batches. */
  readonly kernels: Kernels;
  /**
   * True if the current request has low priority, so that its load must not evict recently used models; absent: never.
   */
  readonly isLowPriority?: () => boolean;
}

export interface RegistryOptions extends Pick<
  ModelsOptions,
  "config" | "resolver" | "hub" | "shippedDir" | "logger" | "clock"
> {
  readonly state: StateFile;
  readonly inspect: InspectGguf;
}
