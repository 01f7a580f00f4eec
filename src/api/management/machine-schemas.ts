import { z } from "zod";
import type { GpuState } from "../../engine/gpu/gpu-finder.ts";
import { gpuDeviceSchema, type ReportedAdapter } from "../../engine/gpu/gpu-report.ts";

export const modelSchema = z.object({
  alias: z.string(),
  loaded: z.boolean(),
  size_bytes: z.number(),
  files: z.string().describe("Equal for the same files on any machine."),
  settings: z.string().describe("Equal for the same settings on any machine."),
  slots: z.int().optional().describe("Requests that it answers at once, when loaded."),
  running: z.int().optional(),
  waiting: z.int().optional(),
  context_size: z.int().optional(),
  gpu_layers: z.int().optional(),
  decode_tokens_per_second: z.number().optional().describe("Of its last answers on this machine."),
  prefill_tokens_per_second: z.number().optional().describe("Of its last prompts on this machine."),
});

export const machineSchema = z
  .object({
    id: z.string().describe("Of this run of its daemon."),
    name: z.string(),
    self: z.boolean().describe("This is the machine that answers."),
    state: z.enum(["ready", "draining"]),
    version: z.string(),
    engine: z
      .string()
      .describe("SHA-256 of its engine's WebAssembly: equal ones continue each other's answers."),
    processor: z.object({ name: z.string(), system: z.string(), usable: z.int(), cores: z.int() }),
    gpus: z.array(z.object({ name: z.string(), backend: z.string(), memory_bytes: z.number().optional() })),
    memory: z.object({
      total_bytes: z.number(),
      models_bytes: z.number().describe("What models may use."),
      used_bytes: z.number().describe("What models use."),
    }),
    running: z.int(),
    waiting: z.int(),
    models: z.array(modelSchema),
  })
  .meta({ id: "FleetMachine" });

export const fleetSchema = z
  .object({
    joined: z.boolean().describe("False: fleet.nats is not set, and this daemon works alone."),
    connected: z.boolean().describe("The NATS server is reachable."),
    problem: z.string().optional().describe("Why it is not, as far as that is known."),
    sharing_problem: z
      .string()
      .optional()
      .describe("What the machines do not share although it is reachable, files and batches say, and why."),
    name: z.string().describe("Of this machine."),
    machines: z.array(machineSchema).describe("This machine first."),
  })
  .meta({ id: "Fleet" });

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

/** What a NATS server says to a wrong user or password, token or credentials. */
const REFUSAL = /^'?authorization violation/iu;

/** Whether the NATS server is there and refuses this machine. */
export function isRefused(problem: string | undefined): boolean {
  return problem !== undefined && REFUSAL.test(problem);
}

/** What keeps a machine from its NATS server: "is not reachable (connection refused)", say. */
export function natsTrouble(problem: string | undefined): string {
  if (isRefused(problem)) return "refuses the user and password (or token, credentials) of fleet.nats";
  return `is not reachable${problem === undefined ? "" : ` (${problem})`}`;
}
