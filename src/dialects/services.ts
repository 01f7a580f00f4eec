import type { Logger } from "pino";
import type { Batches } from "../batches/batches.ts";
import type { Config } from "../config/schema.ts";
import type { Life } from "../http/errors/serving.ts";
import type { Inference } from "../inference/inference.ts";
import type { Models } from "../models/models.ts";
import type { SharedRecords } from "./shared-records.ts";

/** Services for the routes of every dialect, created once by the daemon or by a page. */
export interface Services {
  readonly config: {
    readonly models: Pick<Config["models"], "slots" | "queue_size">;
    readonly engine: Pick<Config["engine"], "request_timeout">;
  };
  readonly models: Pick<Models, "list" | "get" | "scaleAdapters">;
  readonly inference: Inference;
  readonly logger: Logger;
  /** Where generation runs, for those who compare. */
  readonly host: {
    readonly where: "daemon" | "browser";
    /** Processor and system, or the browser. */
    readonly machine: string;
    /** SHA-256 of the engine's WebAssembly. */
    readonly engineSha256: string;
  };
  /** What all machines of a fleet can read; absent without one. */
  readonly shared?: SharedRecords | undefined;
  /** From package.json. */
  readonly version: string;
  readonly life: Life;
  /** Aborted when draining begins, to end streams that would never end, such as events. */
  readonly draining: AbortSignal;
}

/** What routes may use that also load models, pull and delete them. */
export interface ModelServices extends Services {
  readonly models: Models;
}

/** What routes of batches may use, which only a server has. */
export interface BatchServices {
  readonly batches: Batches;
}
