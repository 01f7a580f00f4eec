import type { GpuAdapter, ReportedAdapter } from "../../../../src/engine/gpu/gpu-report.ts";

const common = {
  backend: "vulkan",
  vendor: "acme",
  architecture: "one",
  description: "Acme driver 1.2",
  software: false,
  features: { shaderF16: true, subgroups: true, subgroupMatrices: false, timestampQueries: true },
  limits: {
    maxBufferSize: 2 ** 32,
    maxStorageBufferBindingSize: 2 ** 31,
    maxComputeWorkgroupStorageSize: 32_768,
    maxComputeInvocationsPerWorkgroup: 1024,
  },
} as const;

export const card: GpuAdapter = { ...common, name: "Big Card" };
export const chip: GpuAdapter = { ...common, name: "Small Chip", description: "Radeon driver 7" };
export const software: GpuAdapter = { ...common, name: "llvmpipe (LLVM 15)", software: true };
export const broken: ReportedAdapter = { backend: "vulkan", name: "Old Card", problem: "It does not open." };
