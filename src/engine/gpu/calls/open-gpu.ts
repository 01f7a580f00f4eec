import { pollWithBackoff } from "./poll-with-backoff.ts";
import { skipIdleWaits } from "./skip-idle-waits.ts";
import { type ProgramClasses, sizeWorkgroups } from "../programs/size-workgroups.ts";
import type { WebGpuClasses } from "./webgpu-classes.ts";

interface DawnPackage {
  readonly globals: WebGpuClasses & ProgramClasses;
  readonly create: (flags: readonly string[]) => object;
}

/**
 * Gives llama.cpp's script a GPU in its worker: the WebGPU classes and `navigator.gpu`, as in a page. Waits
 * without work are skipped, and long ones leave the processor to others.
 */
export function openGpu({ globals, create }: DawnPackage, flags: readonly string[]): void {
  skipIdleWaits(globals);
  pollWithBackoff(globals);
  sizeWorkgroups(globals);
  Object.assign(globalThis, globals);
  Object.defineProperty(globalThis.navigator, "gpu", { value: create(flags) });
}
