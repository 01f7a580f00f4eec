import type { z } from "zod";
import type { Config } from "../../config/schema.ts";
import type { GpuState } from "../../engine/gpu/gpu-finder.ts";
import type { Kernels } from "../../engine/engine-image.ts";
import type { SandboxState } from "../../engine/sandbox/sandbox-finder.ts";
import type { ServiceEvents } from "../../events/service-events.ts";
import type { HubCatalog } from "../../models/hub/hub-catalog.ts";
import type { Metrics } from "../../metrics/metrics.ts";
import type { FollowRequest } from "../../http/middleware/request-log.ts";
import type { BatchServices, ModelServices } from "../services.ts";
import type { ServedFile } from "../../http/streaming/send-file.ts";
import type { ActivityReport, LogLevel } from "../wire/activity.ts";
import type { DefaultModel } from "../wire/hub.ts";
import type { fleetSchema } from "../wire/machines.ts";
import type { PageFile, PageFileName } from "../wire/page-files.ts";

/** Services for the management routes. */
export interface ManagementServices extends ModelServices {
  /** Files and batches; absent if this installation lacks that optional module. */
  readonly batches?: BatchServices["batches"] | undefined;
  readonly config: Config;
  readonly metrics: Metrics;
  readonly events: ServiceEvents;
  /** Machines of the fleet; absent without a fleet. */
  readonly fleet?: FleetView | undefined;
  /** Recent requests, events and log records. */
  readonly activity: {
    readonly followRequest: FollowRequest;
    /** Returns entries newer than a sequence number, and log records from a minimum level. */
    report(query: { readonly after: number; readonly level: LogLevel }): ActivityReport;
  };
  /** performance.now() when the daemon started, in milliseconds. */
  readonly startedAt: number;
  /** GPU available to engines, even if no model uses it. */
  readonly gpu: GpuState;
  /** Matrix kernels that engines use on the CPU. */
  readonly kernels: Kernels;
  /** The operating system's sandbox around engines. */
  readonly sandbox: { readonly state: SandboxState };
  /** Where the daemon listens; empty until it does. */
  readonly endpoints: { http: string; ipc: string };
  machineMemory(): Promise<MachineMemory>;
  /** Catalog of the hub. */
  readonly hub: Pick<HubCatalog, "search" | "offers" | "url">;
  /** The recommended models of configs/defaults.toml. */
  defaultModels(): readonly DefaultModel[];
  /** Opens a file of a model for sending. Its etag is the SHA-256. */
  readonly openFile: (path: string) => Promise<ServedFile>;
  /**
   * Scripts of the engine for browsers and of the page, by name.
   * @throws ServiceError internal_error if this installation lacks them, route_not_found for an unknown name
   */
  readonly browserScripts: {
    read(name: string): Promise<ServedFile>;
    names(): Promise<readonly string[]>;
  };
  /** The WebAssembly that engines run. */
  engineImage(): Promise<ServedFile>;
  /** llama.cpp's WebAssembly for browsers without memory64 or JSPI. */
  compatImage(): Promise<ServedFile>;
  /** @throws when the file is missing from this installation */
  pageFile(name: PageFileName): PageFile;
  /**
   * Starts draining and shutting down, as SIGTERM does, and returns immediately. For POST /api/system/shutdown, which
   * `daybreak stop` calls; only the IPC endpoint serves it.
   */
  shutdown(): void;
}

/** The fleet as this machine sees it. */
export type FleetReport = z.infer<typeof fleetSchema>;

/** View of the fleet from this machine. */
export interface FleetView {
  /** Settles when the connection is made for the first time. */
  readonly joined: Promise<void>;
  report(): FleetReport;
}

export interface MachineMemory {
  /** Resident bytes of the daemon and its engines. */
  readonly usedBytes: number;
  /** Memory of the machine, or the container's limit. */
  readonly totalBytes: number;
}
