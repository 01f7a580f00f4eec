import { z } from "zod";
import type { GpuState } from "../../engine/gpu/gpu-finder.ts";
import { gpuDeviceSchema, type ReportedAdapter } from "../../engine/gpu/gpu-report.ts";

const adapterSchema = z.object({
  name: z.string(),
  backend: gpuDeviceSchema.shape.backend,
  usable: z.boolean(),
  problem: z.string().optional().describe("Why it is not usable."),
  vendor: z.string().optional(),
  architecture: z.string().optional(),
  description: z.string().optional(),
  software: z.boolean().optional().describe("Runs on the CPU; used only when selected by name."),
  memory_bytes: z.number().optional().describe("Its memory, if the operating system reports it."),
  features: z
    .object({
      shader_f16: z.boolean(),
      subgroups: z.boolean(),
      subgroup_matrices: z.boolean(),
      timestamp_queries: z.boolean(),
    })
    .optional(),
  limits: z
    .object({
      max_buffer_size: z.number(),
      max_storage_buffer_binding_size: z.number(),
      max_compute_workgroup_storage_size: z.number(),
      max_compute_invocations_per_workgroup: z.number(),
    })
    .optional(),
});

export const gpuSchema = z
  .object({
    available: z.boolean(),
    adapter: z.string().optional().describe("Name of the adapter models use."),
    problem: z.string().optional().describe("Why no GPU is available, and what to do."),
    adapters: z.array(adapterSchema).describe("All adapters found, including unusable ones."),
  })
  .meta({ id: "Gpu" });

/** The GPUs as /api/system/status and `daybreak gpu --json` show them. */
export function gpuJson({ available, adapter, problem, adapters }: GpuState): z.infer<typeof gpuSchema> {
  return {
    available,
    ...(adapter && { adapter: adapter.name }),
    ...(problem !== undefined && { problem }),
    adapters: adapters.map(adapterJson),
  };
}

function adapterJson(adapter: ReportedAdapter): z.infer<typeof adapterSchema> {
  const { name, backend, problem } = adapter;
  const common = { name, backend, usable: problem === undefined, ...(problem !== undefined && { problem }) };
  if (!("features" in adapter)) return common;
  const { vendor, architecture, description, software, memory, features, limits } = adapter;
  return {
    ...common,
    vendor,
    architecture,
    description,
    software,
    ...(memory !== undefined && { memory_bytes: memory }),
    features: {
      shader_f16: features.shaderF16,
      subgroups: features.subgroups,
      subgroup_matrices: features.subgroupMatrices,
      timestamp_queries: features.timestampQueries,
    },
    limits: {
      max_buffer_size: limits.maxBufferSize,
      max_storage_buffer_binding_size: limits.maxStorageBufferBindingSize,
      max_compute_workgroup_storage_size: limits.maxComputeWorkgroupStorageSize,
      max_compute_invocations_per_workgroup: limits.maxComputeInvocationsPerWorkgroup,
    },
  };
}
