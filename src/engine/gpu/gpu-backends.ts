/** Graphics interfaces that Dawn's WebGPU is complete on; others it has are for tests or lack compute. */
export const GPU_BACKENDS = ["d3d12", "metal", "vulkan"] as const;
