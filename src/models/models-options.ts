import type { Logger } from "pino";
import type { Config } from "../config/schema.ts";
import type { StartEngine } from "../engine/engine.ts";
import type { Processors } from "../engine/machine-processors.ts";
import type { Kernels } from "../engine/prepare-engine.ts";
import type { EngineSpec } from "../engine/protocol/engine-spec.ts";
import type { TryTemplate } from "../engine/try-template.ts";
import type { ServiceEvents } from "../events/service-events.ts";
import type { InspectGguf } from "./gguf/inspect-gguf.ts";
import type { HubStore } from "./hub/hub-store.ts";
import type { Clock } from "./loading/clock.ts";
import type { MachineMemory } from "./loading/available-memory.ts";
import type { GgufSummary } from "./model.ts";
import type { NameResolver } from "./names/name-resolver.ts";
import type { StateFile } from "./registry/state-file.ts";

/** Bytes that an engine with this specification needs at most, of the machine's memory or of the GPU's. */
export type EstimateMemory = (gguf: GgufSummary, spec: EngineSpec) => number;

/**
 * Decides where the layers of a model go.
 * @param wished layers for the GPU as somebody gave them for this load or this model; undefined: nobody did
 * @param taken bytes of the GPU that other models have
 */
export type PlaceLayers = (
  gguf: GgufSummary,
  spec: EngineSpec,
  wished: number | undefined,
  taken: number,
) => Promise<{ readonly spec: EngineSpec; readonly warning?: string | undefined }>;

/** What the models of a daemon are made with: configuration, engines, the hub, and what the machine has. */
export interface ModelsOptions {
  readonly config: Pick<Config, "models" | "engine" | "cache_dir">;
  readonly startEngine: StartEngine;
  readonly estimateMemory: EstimateMemory;
  /** Bytes that the heap of such an engine may grow to; absent: as far as it can. */
  readonly heapLimit?: EstimateMemory;
  /** Tries the chat templates of Modelfiles; absent: only loading shows what they are worth. */
  readonly tryTemplate?: TryTemplate;
  readonly placeLayers: PlaceLayers;
  /** The GPU's memory; absent: there is none, or nobody knows how much it has. */
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
  /** The default is the machine's. */
  readonly processors?: Processors;
  /** Which code multiplies matrices: the faster, the more of a prompt is done in one step. */
  readonly kernels: Kernels;
  /** What the machine has at the moment; absent: nothing but the budget counts. */
  readonly machineMemory?: () => MachineMemory;
}

/** What the registry of a daemon's models is made with. */
export interface RegistryOptions extends Pick<
  ModelsOptions,
  "config" | "resolver" | "hub" | "shippedDir" | "logger"
> {
  readonly state: StateFile;
  readonly inspect: InspectGguf;
}
