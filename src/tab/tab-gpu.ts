import type { DawnGpu } from "../engine/gpu/dawn.ts";
import { describeAdapter, unusable } from "../engine/gpu/describe-adapter.ts";
import type { GpuAdapter } from "../engine/gpu/gpu-report.ts";
import type { FoundGpu } from "../engine/gpu/place-on-gpu.ts";

/** Whether a page wants the browser's GPU; "software": also one that computes on the CPU, as tests do. */
export type GpuWish = boolean | "software";

/** Looks for the GPU that a browser offers to pages. Drivers of pages are in a process of the browser's own. */
export async function findTabGpu(
  wish: GpuWish,
  scope: { navigator: object } = globalThis,
): Promise<FoundGpu> {
  const found = { adapter: undefined, problem: undefined, ...(wish !== false && (await look(wish, scope))) };
  return { ...found, settings: { mode: wish === false ? "off" : "auto" }, ready: Promise.resolve() };
}

async function look(
  wish: true | "software",
  scope: { navigator: object },
): Promise<{ readonly adapter: GpuAdapter } | { readonly problem: string }> {
  const gpu = webGpuOf(scope.navigator);
  if (!gpu) return { problem: "This browser has no WebGPU; a newer version may have it." };
  const found = await gpu.requestAdapter({ powerPreference: "high-performance" }).catch(() => null);
  if (!found)
    return {
      problem: "This browser has WebGPU, but no GPU for it: there is none, or it does not use its driver.",
    };
  const { vendor, architecture, description } = found.info;
  // Most browsers keep the description to themselves.
  const name = description || [vendor, architecture].filter(Boolean).join(" ") || "GPU";
  const adapter = describeAdapter({ backend: "webgpu", name }, found);
  const problem = unusable(adapter);
  if (problem !== undefined) return { problem: `${name}: ${problem}` };
  if (adapter.software && wish !== "software")
    return {
      problem: `The only adapter, ${name}, computes on the CPU, more slowly than models run without it.`,
    };
  return { adapter };
}

function webGpuOf(navigator: object): DawnGpu | undefined {
  return (navigator as { readonly gpu?: DawnGpu }).gpu;
}
