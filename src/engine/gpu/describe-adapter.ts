import type { DawnAdapter } from "./dawn.ts";
import type { GpuAdapter, GpuDevice } from "./gpu-report.ts";

/** Software adapters whose driver does not report that they are. */
const SOFTWARE_NAMES = /llvmpipe|lavapipe|swiftshader|basic render driver|\bwarp\b/i;

/** What llama.cpp needs to know of an adapter, whether Dawn or a browser offers it. */
export function describeAdapter(device: GpuDevice, { features, limits, info }: DawnAdapter): GpuAdapter {
  const limit = (name: string): number => limits[name] ?? 0;
  return {
    ...device,
    vendor: info.vendor,
    architecture: info.architecture,
    description: info.description,
    software:
      info.isFallbackAdapter === true ||
      info.architecture === "software" ||
      SOFTWARE_NAMES.test(`${device.name} ${info.description}`),
    features: {
      shaderF16: features.has("shader-f16"),
      subgroups: features.has("subgroups"),
      subgroupMatrices: features.has("chromium-experimental-subgroup-matrix"),
      timestampQueries: features.has("timestamp-query"),
    },
    limits: {
      maxBufferSize: limit("maxBufferSize"),
      maxStorageBufferBindingSize: limit("maxStorageBufferBindingSize"),
      maxComputeWorkgroupStorageSize: limit("maxComputeWorkgroupStorageSize"),
      maxComputeInvocationsPerWorkgroup: limit("maxComputeInvocationsPerWorkgroup"),
    },
  };
}

/** Workgroup memory in bytes for which llama.cpp's matrix shaders are laid out: the least that WebGPU guarantees. */
const MIN_WORKGROUP_STORAGE = 16_384;

/** Why llama.cpp cannot run on an adapter, in words; undefined when it can. */
export function unusable({ features, limits }: Pick<GpuAdapter, "features" | "limits">): string | undefined {
  if (!features.shaderF16) {
    return "It has no 16-bit floats in shaders (shader-f16), which llama.cpp needs; a newer driver may add them.";
  }
  if (limits.maxComputeWorkgroupStorageSize < MIN_WORKGROUP_STORAGE) {
    return `Its workgroups share ${limits.maxComputeWorkgroupStorageSize} bytes of memory, but llama.cpp needs ${MIN_WORKGROUP_STORAGE}.`;
  }
  return undefined;
}
