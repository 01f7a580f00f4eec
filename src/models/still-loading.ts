import { ServiceError } from "../errors/service-error.ts";

/** Loading takes seconds; then a request can succeed. */
const RETRY_SECS = 2;

/** What a request is told that comes before its model is there. */
export function stillLoading(alias: string, being: "downloaded" | "loaded"): ServiceError {
  return new ServiceError("model_loading", `The model "${alias}" is being ${being}.`, {
    retryAfterSecs: RETRY_SECS,
  });
}
