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
import type { HubStore } from "./hub/hub-store.ts";
import type { Clock, MachineMemory } from "./loading/available-memory.ts";
import type { GgufSummary } from "./model.ts";
import type { NameResolver } from "./names/name-resolver.ts";
import type { StateFile } from "./registry/state-file.ts";

/** Bytes that an engine with this specification needs at most, of the machine's or the GPU's memory. */
export type EstimateMemory = (gguf: GgufSummary, spec: EngineSpec) => number;

/**
 * Decides where the layers of a model go.
 * @param wished GPU layers set for this load or this model; undefined: not set
 * @param taken bytes of GPU memory that other models have
 */
export type OffloadLayers = (
  gguf: GgufSummary,
  spec: EngineSpec,
  wished: number | undefined,
  taken: number,
) => Promise<{ readonly spec: EngineSpec; readonly warning?: string | undefined }>;

/** Dependencies of a daemon's models: configuration, engines, the hub, and the machine. */
export interface ModelsOptions {
  readonly config: Pick<Config, "models" | "engine" | "cache_dir">;
  readonly startEngine: StartEngine;
  readonly estimateMemory: EstimateMemory;
  /** Maximum heap of such an engine in bytes; absent: no limit of its own. */
  readonly heapLimit?: EstimateMemory;
  /** Tries the chat templates of Modelfiles; absent: they are only tried when the model is loaded. */
  readonly tryTemplate?: TryTemplate;
  readonly quantizeTensors: QuantizeTensors;
  /** Free space of a disk; absent: what the system says. */
  readonly measureSpace?: FreeSpace;
  readonly placeLayers: OffloadLayers;
  /** The GPU's memory; absent: there is no GPU, or its memory is unknown. */
  readonly gpuMemory?: {
    /** Bytes that all models together may use. */
    readonly budget: () => number;
    readonly estimate: EstimateMemory;
  };
  readonly hub: HubStore;
  readonly resolver: NameResolver;
  /** Folder of the models that ship with the project. */
  readonly shippedDir: string;
  readonly events: Pick<ServiceEvents, "emit">;
  readonly logger: Pick<Logger, "debug" | "warn">;
  readonly clock?: Clock;
  /** By default the machine's. */
  readonly processors?: Processors;
  /** Which kernels run; faster ones process more of a prompt in one step. */
  readonly kernels: Kernels;
  /** Whether what is asked for now can wait, and so must not push out what others use; absent: never. */
  readonly isBackground?: () => boolean;
  /** The machine's current memory; absent: only the budget counts. */
  readonly machineMemory?: () => MachineMemory;
}

/** Dependencies of the registry of a daemon's models. */
export interface RegistryOptions extends Pick<
  ModelsOptions,
  "config" | "resolver" | "hub" | "shippedDir" | "logger" | "clock"
> {
  readonly state: StateFile;
  readonly inspect: InspectGguf;
}
