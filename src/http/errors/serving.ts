import { ServiceError } from "../../errors/service-error.ts";

/** The daemon's state, which /health reports. */
export interface Life {
  state: "starting" | "ready" | "draining";
}

/** A small model loads in about a second, so the daemon is usually ready after this. */
const STARTING_RETRY_SECS = 2;
/** A restart by a supervisor takes a few seconds. */
const DRAINING_RETRY_SECS = 5;

/** Throws the 503 for new requests while the daemon starts or drains. */
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
