import { AsyncLocalStorage } from "node:async_hooks";
import { z } from "zod";
import type { LineResponse, RunLine } from "../batches/batch.ts";
import type { App } from "../http/app.ts";

/** The host is never looked up: the request goes straight to the app. */
const ORIGIN = "http://localhost";
const DEFAULT_RETRY_SECS = 1;

const working = new AsyncLocalStorage<true>();

/** Whether what happens now is done for a line of a batch. */
export function isBatchWork(): boolean {
  return working.getStore() === true;
}

/** Has the app's own routes answer lines of batches, as if they had come from the batch's owner, but through no socket. */
export function batchLineRunner(app: Pick<App, "fetch">): RunLine {
  return async ({ path, body, requestId, owner }, signal): Promise<LineResponse> => {
    const bytes = new TextEncoder().encode(body);
    const headers = {
      "content-type": "application/json",
      "content-length": String(bytes.byteLength),
      "x-request-id": requestId,
    };
    const request = new Request(ORIGIN + path, { method: "POST", headers, signal });
    const response = await working.run(
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

/** As the official clients see it. */
function isRetryable(status: number): boolean {
  return status === 408 || status === 409 || status === 429 || status >= 500;
}
