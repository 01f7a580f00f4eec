import type { Logger } from "pino";
import type { Config } from "../config/schema.ts";
import type { StartEngine } from "../engine/engine.ts";
import type { Processors } from "../engine/machine-processors.ts";
import type { Kernels } from "../engine/prepare-engine.ts";
import type { ServiceEvents } from "../events/service-events.ts";
import type { HubStore } from "./hub/hub-store.ts";
import type { Clock } from "./loading/clock.ts";
import type { EstimateMemory, PlaceLayers } from "./loading/load-planner.ts";
import type { PrintModelfile, ReadModelfile } from "./modelfile/model-definition.ts";
import type { NameResolver } from "./names/resolve-name.ts";

/** What the models of a daemon are made with: configuration, engines, the hub, and what the machine has. */
export interface ModelsOptions {
  readonly config: Pick<Config, "models" | "engine" | "cache_dir">;
  readonly startEngine: StartEngine;
  readonly estimateMemory: EstimateMemory;
  readonly placeLayers: PlaceLayers;
  /** The GPU's memory; absent: there is none, or nobody knows how much it has. */
  readonly gpuMemory?: {
    /** Bytes that all models together may use. */
    readonly budget: () => number;
    readonly estimate: EstimateMemory;
  };
  readonly hub: HubStore;
  readonly resolver: NameResolver;
  readonly readModelfile: ReadModelfile;
  readonly printModelfile: PrintModelfile;
  /** Folder of the models that ship with the project. */
  readonly shippedDir: string;
  readonly events: Pick<ServiceEvents, "emit">;
  readonly logger: Pick<Logger, "debug" | "warn">;
  readonly clock?: Clock;
  /** The default is the machine's. */
  readonly processors?: Processors;
  readonly kernels: Kernels;
  /** Bytes of memory of the machine. */
  readonly machineMemory?: number;
}
