import type { ErrorCode } from "../errors/error-codes.ts";
import { ServiceError } from "../errors/service-error.ts";
import { MachineLost } from "./remote-calls.ts";
import { AnswerDiffers } from "./transcript.ts";

/** Errors that come from a machine, not from the request: another machine may succeed. */
const OF_THE_MACHINE: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "overloaded",
  "resources_exhausted",
  "insufficient_memory",
  "insufficient_disk",
  "cache_not_writable",
  "model_not_found",
  "model_not_loaded",
  "model_file_not_found",
  "model_loading",
  "model_load_failed",
  "model_busy",
  "gpu_unavailable",
  "sandbox_unavailable",
  "starting",
  "shutting_down",
  "engine_crashed",
]);

/** Whether it is worth asking another machine after this failure. */
export function mayWorkElsewhere(error: unknown): boolean {
  return isLost(error) || (error instanceof ServiceError && OF_THE_MACHINE.has(error.code));
}

/** Whether the one who answered is gone in the middle of it. */
export function isLost(error: unknown): boolean {
  return error instanceof MachineLost || error instanceof AnswerDiffers;
}

/** What the client is told when no machine is left. */
export function toClient(error: unknown): unknown {
  if (error instanceof AnswerDiffers) return broken("the others would continue otherwise", error);
  return error instanceof MachineLost ? broken("the answer goes on at no other one", error) : error;
}

/** No machine has taken over in time what was lost with its machine. */
export function notContinued(cause: unknown): ServiceError {
  return broken("no other one with the same model and engine could go on in time", cause);
}

function broken(why: string, cause: unknown): ServiceError {
  return new ServiceError("inference_failed", `The machine that answered is gone, and ${why}; try again.`, {
    cause,
  });
}
