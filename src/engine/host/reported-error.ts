import { ServiceError } from "../../errors/service-error.ts";
import type { ReportedError } from "../protocol/messages.ts";

/** An error in the form that crosses to the daemon; unexpected errors keep their message, which is not a secret here. */
export function toReportedError(error: unknown): ReportedError {
  if (error instanceof ServiceError) {
    return {
      code: error.code,
      message: error.message,
      ...(error.param !== undefined && { param: error.param }),
    };
  }
  return { code: "inference_failed", message: error instanceof Error ? error.message : String(error) };
}
