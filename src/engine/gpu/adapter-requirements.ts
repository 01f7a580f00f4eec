import type { GpuAdapter } from "./gpu-report.ts";

/** Graphics interfaces that Dawn's WebGPU is complete on; others it has are for tests or lack compute. */
export const GPU_BACKENDS = ["d3d12", "metal", "vulkan"] as const;

/**
 * Workgroup memory that llama.cpp's matrix shaders are laid out for, in bytes: the least that WebGPU promises.
 */
const LEAST_WORKGROUP_STORAGE = 16_384;

/** Why llama.cpp cannot run on an adapter, in words; undefined when nothing speaks against it. */
export function unusable({ features, limits }: Pick<GpuAdapter, "features" | "limits">): string | undefined {
  if (!features.shaderF16) {
    return "It has no 16-bit floats in shaders (shader-f16), which llama.cpp needs; a newer driver may bring them.";
  }
  if (limits.maxComputeWorkgroupStorageSize < LEAST_WORKGROUP_STORAGE) {
    return `Its workgroups share ${limits.maxComputeWorkgroupStorageSize} bytes, and llama.cpp needs ${LEAST_WORKGROUP_STORAGE}.`;
  }
  return undefined;
}
