import type { WebGpuClasses } from "./webgpu-classes.ts";

/** Most waits of a fast GPU end within this time, and every microsecond counts. In milliseconds. */
const EAGER_MS = 1;

/** A nap adds at most this part to a wait, or the shortest that there is. */
const NAP_SHARE = 0.01;
const SHORTEST_NAP_MS = 0.05;

/** Longer ones would save next to nothing. */
const LONGEST_NAP_MS = 1;

/** Windows rounds a nap up to whole ticks of its clock, of up to 16 ms. */
const CAN_NAP = process.platform !== "win32";

/** Milliseconds to sleep in a wait that has lasted so long; 0: not yet. */
export function backoffMs(waitedMs: number): number {
  if (waitedMs <= EAGER_MS) return 0;
  return Math.min(LONGEST_NAP_MS, Math.max(SHORTEST_NAP_MS, waitedMs * NAP_SHARE));
}

/**
 * Dawn asks the driver whether work is done in every turn of the event loop, which keeps a processor busy for as
 * long as the GPU is. So a wait that is not over soon goes on in naps.
 */
export function pollWithBackoff(
  { GPUQueue, GPUBuffer }: WebGpuClasses,
  scope: { setImmediate: (...args: never[]) => unknown } = globalThis,
): void {
  if (!CAN_NAP) return;
  const bed = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
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

  // Dawn takes it from the global scope for each of its turns; Node's own parts do not.
  const { setImmediate } = scope;
  scope.setImmediate = (...args) => {
    const nap = backoffMs(performance.now() - waitsSince);
    if (nap > 0) Atomics.wait(bed, 0, 0, nap);
    return setImmediate(...args);
  };
}
