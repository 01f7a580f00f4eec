import type { WebGpuClasses } from "./webgpu-classes.ts";

/**
 * Bytes that may be written between two waits that wait. Dawn holds what is written until the GPU has it, so a
 * model that is being loaded would be in memory twice.
 */
const MOST_UNWAITED_BYTES = 1024 * 1024;

/**
 * Answers at once where llama.cpp waits for work that there is none of. It waits after each tensor that it writes,
 * a dozen for each token; but the queue keeps the order, so the programs that follow see what was written before.
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
    if (finished === submissions && unwaitedBytes <= MOST_UNWAITED_BYTES) return;
    const waitsFor = submissions;
    unwaitedBytes = 0;
    await Reflect.apply(onSubmittedWorkDone, this, []);
    finished = Math.max(finished, waitsFor);
  };
}
