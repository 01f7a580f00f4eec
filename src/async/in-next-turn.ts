/** Calls back in the next turn of the event loop, after messages that have arrived were read. */
export function inNextTurn(callback: () => void): void {
  // Pages have no setImmediate.
  if ("setImmediate" in globalThis) setImmediate(callback);
  else setTimeout(callback);
}
