import { pollWithBackoff } from "./poll-with-backoff.ts";
import { skipIdleWaits } from "./skip-idle-waits.ts";
import { fusePrograms } from "../programs/fuse-programs.ts";
import type { FusingClasses } from "../programs/fusing-classes.ts";
import { sizeWorkgroups } from "../programs/size-workgroups.ts";
import type { WebGpuClasses } from "./webgpu-classes.ts";

interface DawnPackage {
  readonly globals: WebGpuClasses & FusingClasses;
  readonly create: (flags: readonly string[]) => object;
}

/**
 * Gives llama.cpp's script a GPU in its worker: the WebGPU classes and `navigator.gpu`, as in a page. Waits
 * without work are skipped, long ones leave the processor to others, and some programs run as one.
 */
export function openGpu({ globals, create }: DawnPackage, flags: readonly string[]): void {
  fusePrograms(globals);
  skipIdleWaits(globals);
  pollWithBackoff(globals);
  sizeWorkgroups(globals);
  Object.assign(globalThis, globals);
  Object.defineProperty(globalThis.navigator, "gpu", { value: create(flags) });
}
