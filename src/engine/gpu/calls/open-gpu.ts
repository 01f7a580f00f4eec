import { fusePrograms } from "../programs/fuse-programs.ts";
import type { FusingClasses } from "../programs/fusible.ts";
import { sizeWorkgroups } from "../programs/size-workgroups.ts";

interface DawnPackage {
  readonly globals: WebGpuClasses & FusingClasses;
  readonly create: (flags: readonly string[]) => object;
}

/**
 * Gives llama.cpp's script a GPU in its worker: the WebGPU classes and `navigator.gpu`, as in a page. Waits without
 * pending work are skipped, long ones sleep between polls, and some programs are fused.
 */
export function openGpu({ globals, create }: DawnPackage, flags: readonly string[]): void {
  fusePrograms(globals);
  skipIdleWaits(globals);
  pollWithBackoff(globals);
  sizeWorkgroups(globals);
  Object.assign(globalThis, globals);
  Object.defineProperty(globalThis.navigator, "gpu", { value: create(flags) });
}

/** How long to poll without sleeping, in milliseconds; most waits for a fast GPU are shorter. */
const BUSY_POLL_MS = 1;

/** A nap lasts at most this share of the wait so far, or the shortest nap. */
const NAP_SHARE = 0.01;
const MIN_NAP_MS = 0.05;

/** Longer naps would save almost nothing. */
const MAX_NAP_MS = 1;

/** Windows rounds naps up to whole clock ticks, which are too long. */
const CAN_NAP = process.platform !== "win32";

/** Milliseconds to sleep after waiting for `waitedMs`; 0: do not sleep yet. */
export function backoffMs(waitedMs: number): number {
  if (waitedMs <= BUSY_POLL_MS) return 0;
  return Math.min(MAX_NAP_MS, Math.max(MIN_NAP_MS, waitedMs * NAP_SHARE));
}

/**
 * Adds sleeps between the polls of longer waits. Dawn polls the driver in every turn of the event loop, which keeps a
 * processor busy while the GPU works.
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

/**
 * Maximum bytes written between two real waits. Dawn buffers written data until the GPU has it, so without waits a model
 * would be in memory twice while it loads.
 */
const MAX_UNWAITED_BYTES = 1024 * 1024;

/**
 * Skips waits when no work is pending. llama.cpp waits after each tensor that it writes, several times per token, but
 * the queue is ordered, so later programs see earlier writes.
 */
export function skipIdleWaits({ GPUQueue }: WebGpuClasses): void {
  let submissions = 0;
  let finished = 0;
  let unwaitedBytes = 0;

  const { submit, writeBuffer, onSubmittedWorkDone } = GPUQueue.prototype;
  GPUQueue.prototype.submit = function (this: object, commands) {
    submissions += 1;
    Reflect.apply(submit, this, [commands]);
  };
  GPUQueue.prototype.writeBuffer = function (this: object, buffer, at, data, offset, size) {
    unwaitedBytes += size;
    Reflect.apply(writeBuffer, this, [buffer, at, data, offset, size]);
  };
  GPUQueue.prototype.onSubmittedWorkDone = async function (this: object) {
    if (finished === submissions && unwaitedBytes <= MAX_UNWAITED_BYTES) return;
    const waitsFor = submissions;
    unwaitedBytes = 0;
    await Reflect.apply(onSubmittedWorkDone, this, []);
    finished = Math.max(finished, waitsFor);
  };
}

/** Part of WebGPU's classes, as Dawn exports them, that is involved in waits. */

interface Class<Methods> {
  readonly prototype: Methods;
}

export interface WebGpuClasses {
  readonly GPUBuffer: Class<{ mapAsync: (...args: unknown[]) => Promise<unknown> }>;
  readonly GPUQueue: Class<{
    submit: (commands: readonly object[]) => void;
    writeBuffer: (buffer: object, at: number, data: Uint8Array, offset: number, size: number) => void;
    onSubmittedWorkDone: () => Promise<unknown>;
  }>;
}
