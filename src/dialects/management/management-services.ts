import type { Config } from "../../config/schema.ts";
import type { GpuState } from "../../engine/gpu/gpu-finder.ts";
import type { Kernels } from "../../engine/prepare-engine.ts";
import type { WallState } from "../../engine/walls/sandbox-finder.ts";
import type { ServiceEvents } from "../../events/service-events.ts";
import type { Metrics } from "../../metrics/metrics.ts";
import type { ModelServices } from "../services.ts";
import type { ServedFile } from "../../http/streaming/send-file.ts";
import type { DefaultModel } from "./default-model-routes.ts";
import type { BrowserScript } from "./browser-routes.ts";
import type { OpenFile } from "./model-file-routes.ts";
import type { PageFile, PageFileName } from "./page-routes.ts";

/** What the management routes may use beside what every dialect has: the state of the daemon itself. */
export interface ManagementServices extends ModelServices {
  readonly config: Config;
  readonly metrics: Metrics;
  readonly events: ServiceEvents;
  /** Milliseconds since an arbitrary origin (performance.now) at the start. */
  readonly startedAt: number;
  /** What the engines could use, not what a model does use. */
  readonly gpu: GpuState;
  /** Which code multiplies matrices on the CPU. */
  readonly kernels: Kernels;
  /** What the operating system puts around engines. */
  readonly wall: { readonly state: WallState };
  /** Where the daemon listens, as /api/system/status reports it; empty until it does. */
  readonly endpoints: { http: string; ipc: string };
  /** The daemon's and the engines' memory now, and how much the machine has. */
  machineMemory(): Promise<MachineMemory>;
  /** The hand-picked models of configs/defaults.toml. */
  defaultModels(): readonly DefaultModel[];
  /** Opens a file of a model. */
  readonly openFile: OpenFile;
  /** @throws ServiceError when the scripts for browsers have not been built */
  browserScript(name: BrowserScript): ServedFile;
  /** The WebAssembly that engines run. */
  engineImage(): Promise<ServedFile>;
  /** @throws when the file is missing from this installation */
  pageFile(name: PageFileName): PageFile;
  /**
   * Begins to drain and end the daemon, as SIGTERM does; returns at once. For POST /api/system/shutdown, which only
   * the IPC endpoint serves (over TCP it is an unknown route) and `daybreak stop` calls.
   */
  shutdown(): void;
}

export interface MachineMemory {
  /** Resident bytes of the daemon and its engines. */
  readonly usedBytes: number;
  /** What the machine, or the container's limit, has. */
  readonly totalBytes: number;
}
