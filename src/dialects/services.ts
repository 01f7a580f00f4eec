import type { Logger } from "pino";
import type { Config } from "../config/schema.ts";
import type { Life } from "../http/errors/serving.ts";
import type { Inference } from "../inference/inference.ts";
import type { Models } from "../models/model.ts";

/** What the routes of every dialect may use; made once by the daemon and handed down. */
export interface Services {
  readonly config: Config;
  readonly models: Models;
  readonly inference: Inference;
  readonly logger: Logger;
  /** Version of package.json. */
  readonly version: string;
  readonly life: Life;
  /** Aborted when draining begins: what waits without end, such as an event stream, ends then. */
  readonly draining: AbortSignal;
}
