import type { Logger } from "pino";
import type { Config } from "../config/schema.ts";
import type { Life } from "../http/errors/serving.ts";
import type { Inference } from "../inference/inference.ts";
import type { Models } from "../models/model.ts";

/** Services for the routes of every dialect, created once by the daemon. */
export interface Services {
  readonly config: Config;
  readonly models: Models;
  readonly inference: Inference;
  readonly logger: Logger;
  /** From package.json. */
  readonly version: string;
  readonly life: Life;
  /** Aborted when draining begins, to end streams that would never end, such as events. */
  readonly draining: AbortSignal;
}
