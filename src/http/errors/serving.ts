import { ServiceError } from "../../errors/service-error.ts";
import type { Services } from "../services.ts";

/** Loading a small model takes about a second: a client that waits so long mostly finds the daemon ready. */
const STARTING_RETRY_SECS = 2;
/** A restart by a supervisor takes a few seconds. */
const DRAINING_RETRY_SECS = 5;

/** Throws the 503 that new work gets while the daemon starts or drains. */
export function assertServing(services: Pick<Services, "life">): void {
  if (services.life.state === "starting") {
    throw new ServiceError("starting", "The daemon is starting: its models are still being loaded.", {
      retryAfterSecs: STARTING_RETRY_SECS,
    });
  }
  if (services.life.state === "draining") {
    throw new ServiceError("shutting_down", "The daemon is shutting down and takes no new requests.", {
      retryAfterSecs: DRAINING_RETRY_SECS,
    });
  }
}
