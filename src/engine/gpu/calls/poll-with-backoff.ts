import type { WebGpuClasses } from "./webgpu-classes.ts";

/** How long to poll without sleeping, in milliseconds; most waits for a fast GPU are shorter. */
const EAGER_MS = 1;

/** A nap lasts at most this share of the wait so far, or the shortest nap. */
const NAP_SHARE = 0.01;
const MIN_NAP_MS = 0.05;

/** Longer naps would save almost nothing. */
const MAX_NAP_MS = 1;

/** Windows rounds naps up to whole clock ticks, which are too long. */
const CAN_NAP = process.platform !== "win32";

/** Milliseconds to sleep after waiting for `waitedMs`; 0: do not sleep yet. */
export function backoffMs(waitedMs: number): number {
  if (waitedMs <= EAGER_MS) return 0;
  return Math.min(MAX_NAP_MS, Math.max(MIN_NAP_MS, waitedMs * NAP_SHARE));
}

/**
 * Dawn polls the driver in every turn of the event loop, which keeps a processor busy while the GPU works. This adds
 * sleeps between the polls of longer waits.
 */
export function pollWithBackoff(
  { GPUQueue, GPUBuffer }: WebGpuClasses,
  scope: { setImmediate: (...args: never[]) => unknown } = globalThis,
): void {
  if (!CAN_NAP) return;
  const sleeper = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  let waitsSince = 0;

  const { submit, onSubmittedWorkDone } = GPUQueue.prototype;
  GPUQueue.prototype.submit = function (this: object, commands) {
    waitsSince = performance.now();
    Reflect.apply(submit, this, [commands]);
  };
  GPUQueue.prototype.onSubmittedWorkDone = function (this: object) {
    waitsSince = performance.now();
    return Reflect.apply(onSubmittedWorkDone, this, []);
  };
  const { mapAsync } = GPUBuffer.prototype;
  GPUBuffer.prototype.mapAsync = function (this: object, ...args) {
    waitsSince = performance.now();
    return Reflect.apply(mapAsync, this, args);
  };

  // Dawn looks up the global function each time; Node's own modules do not.
  const { setImmediate } = scope;
  scope.setImmediate = (...args) => {
    const nap = backoffMs(performance.now() - waitsSince);
    if (nap > 0) Atomics.wait(sleeper, 0, 0, nap);
    return setImmediate(...args);
  };
}
