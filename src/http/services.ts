import type { Logger } from "pino";
import type { Config } from "../config/schema.ts";
import type { GpuState } from "../engine/gpu/gpu-finder.ts";
import type { Kernels } from "../engine/prepare-engine.ts";
import type { WallState } from "../engine/walls/second-wall.ts";
import type { ServiceEvents } from "../events/service-events.ts";
import type { Inference } from "../inference/inference.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Models } from "../models/model.ts";

export type LifeState = "starting" | "ready" | "draining";

/** What routes may use; made once by the daemon and handed down. */
export interface Services {
  readonly config: Config;
  readonly models: Models;
  readonly inference: Inference;
  readonly metrics: Metrics;
  readonly events: ServiceEvents;
  readonly logger: Logger;
  /** Version of package.json. */
  readonly version: string;
  /** Milliseconds since an arbitrary origin (performance.now) at the start. */
  readonly startedAt: number;
  /** The daemon moves it; /health reports it. */
  readonly life: { state: LifeState };
  /** Aborted when draining begins: what waits without end, such as an event stream, ends then. */
  readonly draining: AbortSignal;
  /** What the engines could use, not what a model does use. */
  readonly gpu: GpuState;
  /** Which code multiplies matrices on the CPU. */
  readonly kernels: Kernels;
  /** What the operating system puts around engines. */
  readonly wall: { readonly state: WallState };
  /** Where it listens, as /api/system/status reports it; empty until it does. */
  readonly endpoints: { http: string; ipc: string };
  /**
   * Begins to drain and end the daemon, as SIGTERM does; returns at once. For POST /api/system/shutdown, which only
   * the IPC endpoint serves (over TCP it is an unknown route) and `daybreak stop` calls.
   */
  readonly shutdown: () => void;
}
