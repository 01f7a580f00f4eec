import { ServiceError } from "../../errors/service-error.ts";

/** The error for a line of a Modelfile; lines count from 1. */
export function modelfileError(line: number, message: string, cause?: unknown): ServiceError {
  return new ServiceError("invalid_modelfile", `Modelfile, line ${line}: ${message}`, {
    param: "modelfile",
    ...(cause !== undefined && { cause }),
  });
}
