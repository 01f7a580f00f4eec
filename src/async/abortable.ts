/**
 * Waits for a promise, or for a signal if that aborts first. The work behind the promise goes on.
 * @throws what the promise rejects with, or the signal's reason
 */
export async function abortable<Value>(promise: PromiseLike<Value>, signal: AbortSignal): Promise<Value> {
  if (signal.aborted) {
    // Nobody waits for it any more, so its rejection must not be unhandled.
    promise.then(undefined, () => undefined);
    throw signal.reason;
  }
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
