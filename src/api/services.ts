import type { Logger } from "pino";
import type { BatchService } from "../batches/batch-service.ts";
import type { Config } from "../config/schema.ts";
import type { DaemonState } from "../http/errors.ts";
import type { Inference } from "../inference/inference.ts";
import type { Models } from "../models/models.ts";

/** Services for the routes of every API, created once by the daemon or by a page. */
export interface Services {
  readonly config: {
    readonly models: Pick<Config["models"], "slots" | "queue_size">;
    readonly engine: Pick<Config["engine"], "request_timeout">;
  };
  readonly models: Pick<Models, "list" | "get" | "scaleAdapters">;
  readonly inference: Inference;
  readonly logger: Logger;
  /** Environment that generation runs in, reported by experiments. */
  readonly host: {
    readonly where: "daemon" | "browser";
    /** Processor and operating system, or the browser. */
    readonly machine: string;
    /** SHA-256 of the engine's WebAssembly. */
    readonly engineSha256: string;
  };
  /** Records shared by all machines of the fleet; absent without a fleet. */
  readonly shared?: SharedRecords | undefined;
  /** From package.json. */
  readonly version: string;
  readonly life: DaemonState;
  /** Aborted when draining begins, to end streams that never end by themselves, such as events. */
  readonly draining: AbortSignal;
}

/** Services for routes that also load, pull and delete models. */
export interface ModelServices extends Services {
  readonly models: Models;
}

/** Services for batch routes, which only the daemon has. */
export interface BatchServices {
  readonly batches: BatchService;
}

/** Result of an operation on shared records while their store is unreachable: the record may or may not exist. */
export class RecordsUnreachable {
  /** Reason and remedy, such as "the NATS server at … does not answer: try again when it is back". */
  readonly why: string;
  readonly retryAfterSecs: number;

  constructor(why: string, retryAfterSecs: number) {
    this.why = why;
    this.retryAfterSecs = retryAfterSecs;
  }
}

/**
 * Records that all machines of a fleet can read, until the store is full. No method rejects. In a fleet that never had
 * a store, records are absent (undefined); while an existing store cannot be reached, results are {@link
 * RecordsUnreachable}.
 */
export interface SharedRecords {
  /**
   * Stores a record; logs a warning if it does not fit.
   * @param name letters, digits, - and _
   */
  put(name: string, record: Uint8Array): Promise<void>;
  get(name: string): Promise<Uint8Array | RecordsUnreachable | undefined>;
  /** Removes a record, and marks it as erased for machines that have a copy. */
  erase(name: string): Promise<RecordsUnreachable | undefined>;
  /** True if any machine has erased the record. */
  isErased(name: string): Promise<boolean | RecordsUnreachable>;
}
