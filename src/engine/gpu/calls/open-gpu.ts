import { pollWithBackoff } from "./poll-with-backoff.ts";
import { reuseBindGroups } from "./reuse-bind-groups.ts";
import { skipIdleWaits } from "./skip-idle-waits.ts";
import { gatherParameters } from "./gather-parameters.ts";
import type { WebGpuClasses } from "./webgpu-classes.ts";

interface DawnPackage {
  readonly globals: WebGpuClasses;
  readonly create: (flags: readonly string[]) => object;
}

/**
 * Gives llama.cpp's script a GPU, in the worker in which it runs: the classes and `navigator.gpu` of a page. What
 * llama.cpp asks of them for each token is the same again and again, and a call into Dawn costs more than the work on
 * a fast GPU; so calls that change nothing stay here.
 */
export function openGpu({ globals, create }: DawnPackage, flags: readonly string[]): void {
  reuseBindGroups(globals);
  gatherParameters(globals);
  skipIdleWaits(globals);
  pollWithBackoff(globals);
  Object.assign(globalThis, globals);
  Object.defineProperty(globalThis.navigator, "gpu", { value: create(flags) });
}
