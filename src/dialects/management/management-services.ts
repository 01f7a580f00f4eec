import type { GpuState } from "../../engine/gpu/gpu-finder.ts";
import type { Kernels } from "../../engine/prepare-engine.ts";
import type { WallState } from "../../engine/walls/sandbox-finder.ts";
import type { ServiceEvents } from "../../events/service-events.ts";
import type { Metrics } from "../../metrics/metrics.ts";
import type { Services } from "../services.ts";
import type { DefaultModel } from "./default-model-routes.ts";
import type { PageFile, PageFileName } from "./page-routes.ts";

/** More services for the management routes: the state of the daemon. */
export interface ManagementServices extends Services {
  readonly metrics: Metrics;
  readonly events: ServiceEvents;
  /** performance.now() when the daemon started, in milliseconds. */
  readonly startedAt: number;
  /** The GPU available to engines, whether or not a model uses it. */
  readonly gpu: GpuState;
  /** The matrix kernels that engines use on the CPU. */
  readonly kernels: Kernels;
  /** The operating system's sandbox around engines. */
  readonly wall: { readonly state: WallState };
  /** Where the daemon listens; empty until it does. */
  readonly endpoints: { http: string; ipc: string };
  machineMemory(): Promise<MachineMemory>;
  /** The recommended models of configs/defaults.toml. */
  defaultModels(): readonly DefaultModel[];
  /** @throws when the file is missing from this installation */
  pageFile(name: PageFileName): PageFile;
  /**
   * Starts draining and shutting down, as SIGTERM does, and returns immediately. For POST /api/system/shutdown, which
   * `daybreak stop` calls; only the IPC endpoint serves it.
   */
  shutdown(): void;
}

export interface MachineMemory {
  /** Resident bytes of the daemon and its engines. */
  readonly usedBytes: number;
  /** Of the machine, or the container's limit. */
  readonly totalBytes: number;
}
