import type { WebGpuClasses } from "./webgpu-classes.ts";

/** Most waits of a fast GPU end within this time, and every microsecond counts. In milliseconds. */
const EAGER_MS = 1;

/** The rest of a longer wait, in milliseconds: what it costs at most is a hundredth of the wait or less. */
const NAP_MS = 0.05;

/** Windows rounds a nap up to whole ticks of its clock, of up to 16 ms. */
const CAN_NAP = process.platform !== "win32";

/**
 * Dawn asks the driver whether work is done in every turn of the event loop, which keeps a processor busy for as
 * long as the GPU is. So a wait that is not over soon goes on in naps.
 */
export function pollGently(
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
    if (performance.now() - waitsSince > EAGER_MS) Atomics.wait(bed, 0, 0, NAP_MS);
    return setImmediate(...args);
  };
}
