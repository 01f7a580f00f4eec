import { AsyncLocalStorage } from "node:async_hooks";
import { z } from "zod";
import type { LineResponse, RunLine } from "../batches/batch.ts";
import type { App } from "../http/app.ts";

/** Placeholder: the request goes to the app directly. */
const ORIGIN = "http://localhost";
const DEFAULT_RETRY_SECS = 1;

const batchWork = new AsyncLocalStorage<true>();

/** True in the asynchronous context of a line of a batch. */
export function isBatchWork(): boolean {
  return batchWork.getStore() === true;
}

/** Returns a function that answers lines of batches by the app's routes, with the rights of the batch's owner. */
export function batchLineRunner(app: Pick<App, "fetch">): RunLine {
  return async ({ path, body, requestId, owner }, signal): Promise<LineResponse> => {
    const bytes = new TextEncoder().encode(body);
    const headers = {
      "content-type": "application/json",
      "content-length": String(bytes.byteLength),
      "x-request-id": requestId,
    };
    const request = new Request(ORIGIN + path, { method: "POST", headers, signal });
    const response = await batchWork.run(
      true,
      async () => await app.fetch(request, { body: bytes, batch: { owner } }),
    );
    const retryAfter = z.coerce.number().positive().safeParse(response.headers.get("retry-after"));
    return {
      status: response.status,
      body: await response.text(),
      retryable: response.headers.get("x-should-retry") !== "false" && isRetryable(response.status),
      retryAfterSecs: retryAfter.data ?? DEFAULT_RETRY_SECS,
    };
  };
}

/** True for the statuses that the official clients retry. */
function isRetryable(status: number): boolean {
  return status === 408 || status === 409 || status === 429 || status >= 500;
}
