import { exhaustedResource, isSystemError } from "../errors/exhausted-resource.ts";
import { ServiceError } from "../errors/service-error.ts";

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "the program that runs it is not there any more",
  EACCES: "this user may not run the program",
  EPERM: "the system does not permit it",
};

/**
 * A process that could not be started, as the answer to the request that needed it.
 * @param what was to be started: "The model's engine"
 */
export function spawnFailure(what: string, cause: unknown): ServiceError {
  const exhausted = exhaustedResource(cause);
  if (exhausted !== undefined) {
    return new ServiceError("resources_exhausted", `${what} cannot be started: ${exhausted}.`, { cause });
  }
  const program = isSystemError(cause) ? (cause.path ?? process.execPath) : process.execPath;
  const reason = (isSystemError(cause) ? REASONS[cause.code] : undefined) ?? "the system refuses it";
  return new ServiceError(
    "model_load_failed",
    `${what} cannot be started: ${reason} (${program}). Start the daemon again, or install it anew.`,
    { cause },
  );
}
