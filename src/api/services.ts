import type { Logger } from "pino";
import type { Batches } from "../batches/batch-store.ts";
import type { Config } from "../config/schema.ts";
import type { Life } from "../http/errors.ts";
import type { Inference } from "../inference/inference.ts";
import type { Models } from "../models/models.ts";

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

/** The place of records cannot be asked now, so nobody knows what is there. */
export class RecordsUnreachable {
  /** Why, and what to do: "the NATS server at … does not answer: try again when it is back". */
  readonly why: string;
  readonly retryAfterSecs: number;

  constructor(why: string, retryAfterSecs: number) {
    this.why = why;
    this.retryAfterSecs = retryAfterSecs;
  }
}

/**
 * Records that all machines of a fleet can read, for as long as there is room for them. Nothing here rejects. Where the
 * fleet has never had a place for them, a record is not there; where it has, but cannot be asked now, that is said.
 */
export interface SharedRecords {
  /**
   * Keeps a record, if there is room for it now; if not, somebody is warned.
   * @param name letters, digits, - and _
   */
  put(name: string, record: Uint8Array): Promise<void>;
  get(name: string): Promise<Uint8Array | RecordsUnreachable | undefined>;
  /** Removes a record, and remembers that for those who have a copy. */
  erase(name: string): Promise<RecordsUnreachable | undefined>;
  /** Whether a record was removed, by whichever machine. */
  isErased(name: string): Promise<boolean | RecordsUnreachable>;
}
