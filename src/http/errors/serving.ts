import { ServiceError } from "../../errors/service-error.ts";

/** Where the daemon is in its life; the daemon moves it, and /health reports it. */
export interface Life {
  state: "starting" | "ready" | "draining";
}

/** Loading a small model takes about a second: a client that waits so long mostly finds the daemon ready. */
const STARTING_RETRY_SECS = 2;
/** A restart by a supervisor takes a few seconds. */
const DRAINING_RETRY_SECS = 5;

/** Throws the 503 that new work gets while the daemon starts or drains. */
export function assertServing({ life }: { readonly life: Readonly<Life> }): void {
  if (life.state === "starting") {
    throw new ServiceError("starting", "The daemon is starting: its models are still being loaded.", {
      retryAfterSecs: STARTING_RETRY_SECS,
    });
  }
  if (life.state === "draining") {
    throw new ServiceError("shutting_down", "The daemon is shutting down and takes no new requests.", {
      retryAfterSecs: DRAINING_RETRY_SECS,
    });
  }
}
