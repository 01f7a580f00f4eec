import type { WebGpuClasses } from "./webgpu-classes.ts";

/**
 * Most bytes written between two real waits. Dawn keeps written data until the GPU has it, so without waits a model
 * would be in memory twice while it loads.
 */
const MAX_UNWAITED_BYTES = 1024 * 1024;

/**
 * Skips waits when no work is pending. llama.cpp waits after each tensor that it writes, several times per token, but
 * the queue keeps the order, so later programs see what was written before.
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
