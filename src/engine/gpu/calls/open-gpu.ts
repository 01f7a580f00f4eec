import { pollWithBackoff } from "./poll-with-backoff.ts";
import { reuseBindGroups } from "./reuse-bind-groups.ts";
import { skipIdleWaits } from "./skip-idle-waits.ts";
import { gatherParameters } from "./gather-parameters.ts";
import { type ProgramClasses, sizeWorkgroups } from "../programs/size-workgroups.ts";
import type { WebGpuClasses } from "./webgpu-classes.ts";

interface DawnPackage {
  readonly globals: WebGpuClasses & ProgramClasses;
  readonly create: (flags: readonly string[]) => object;
}

/**
 * Gives llama.cpp's script a GPU in its worker: the WebGPU classes and `navigator.gpu`, as in a page. llama.cpp repeats
 * the same calls for each token, and a call into Dawn may cost more than the work on a fast GPU, so redundant calls are
 * skipped.
 */
export function openGpu({ globals, create }: DawnPackage, flags: readonly string[]): void {
  reuseBindGroups(globals);
  gatherParameters(globals);
  skipIdleWaits(globals);
  pollWithBackoff(globals);
  sizeWorkgroups(globals);
  Object.assign(globalThis, globals);
  Object.defineProperty(globalThis.navigator, "gpu", { value: create(flags) });
}
