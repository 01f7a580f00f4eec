import { z } from "zod";
import type { GpuState } from "../../engine/gpu/gpu-finder.ts";
import { gpuDeviceSchema, type ReportedAdapter } from "../../engine/gpu/gpu-report.ts";

const fleetModelSchema = z.object({
  alias: z.string(),
  loaded: z.boolean(),
  size_bytes: z.number(),
  files: z.string().describe("Hash of the files, equal on all machines with the same files."),
  settings: z.string().describe("Hash of the settings, equal on all machines with the same settings."),
  slots: z.int().optional().describe("Number of concurrent requests, when loaded."),
  running: z.int().optional(),
  waiting: z.int().optional(),
  context_size: z.int().optional(),
  gpu_layers: z.int().optional(),
  decode_tokens_per_second: z
    .number()
    .optional()
    .describe("Decode speed of its last answers on this machine."),
  prefill_tokens_per_second: z
    .number()
    .optional()
    .describe("Prefill speed of its last prompts on this machine."),
});

const fleetMachineSchema = z
  .object({
    id: z.string().describe("ID of this run of its daemon."),
    name: z.string(),
    self: z.boolean().describe("True for the machine that answers."),
    state: z.enum(["ready", "draining"]),
    version: z.string(),
    engine: z
      .string()
      .describe(
        "SHA-256 of its engine's WebAssembly. Machines with equal ones can continue each other's answers.",
      ),
    processor: z.object({ name: z.string(), system: z.string(), usable: z.int(), cores: z.int() }),
    gpus: z.array(z.object({ name: z.string(), backend: z.string(), memory_bytes: z.number().optional() })),
    memory: z.object({
      total_bytes: z.number(),
      models_bytes: z.number().describe("Available for models."),
      used_bytes: z.number().describe("Used by models."),
    }),
    running: z.int(),
    waiting: z.int(),
    models: z.array(fleetModelSchema),
  })
  .meta({ id: "FleetMachine" });

export const fleetSchema = z
  .object({
    joined: z.boolean().describe("False: fleet.nats is not set, and this daemon runs without a fleet."),
    connected: z.boolean().describe("The NATS server is reachable."),
    problem: z.string().optional().describe("Known reason why the NATS server is not reachable."),
    sharing_problem: z
      .string()
      .optional()
      .describe(
        "Data that machines do not share although the server is reachable, such as batches, and the reason.",
      ),
    name: z.string().describe("Name of this machine."),
    machines: z.array(fleetMachineSchema).describe("Machines, this one first."),
  })
  .meta({ id: "Fleet" });

const adapterSchema = z.object({
  name: z.string(),
  backend: gpuDeviceSchema.shape.backend,
  usable: z.boolean(),
  problem: z.string().optional().describe("Reason why it is not usable."),
  vendor: z.string().optional(),
  architecture: z.string().optional(),
  description: z.string().optional(),
  software: z.boolean().optional().describe("Software renderer on the CPU; used only if selected by name."),
  memory_bytes: z.number().optional().describe("Memory, if the operating system reports it."),
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
    adapter: z.string().optional().describe("Name of the adapter that models use."),
    problem: z.string().optional().describe("Reason why no GPU is available, and the remedy."),
    adapters: z.array(adapterSchema).describe("All adapters found, including unusable ones."),
  })
  .meta({ id: "Gpu" });

/** Converts the GPUs for /api/system/status and `daybreak gpu --json`. */
export function gpuJson({ available, adapter, problem, adapters }: GpuState): z.infer<typeof gpuSchema> {
  return {
    available,
    adapter: adapter?.name,
    problem,
    adapters: adapters.map(adapterJson),
  };
}

function adapterJson(adapter: ReportedAdapter): z.infer<typeof adapterSchema> {
  const { name, backend, problem } = adapter;
  const common = { name, backend, usable: problem === undefined, problem };
  if (!("features" in adapter)) return common;
  const { vendor, architecture, description, software, memory, features, limits } = adapter;
  return {
    ...common,
    vendor,
    architecture,
    description,
    software,
    memory_bytes: memory,
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

/** Error of a NATS server for a wrong user, password, token or credentials. */
const AUTHORIZATION_VIOLATION = /^'?authorization violation/iu;

/** True if the NATS server is reachable but refuses the credentials of this machine. */
export function isNatsAuthFailure(problem: string | undefined): boolean {
  return problem !== undefined && AUTHORIZATION_VIOLATION.test(problem);
}

/** Describes a connection problem: the predicate of a sentence, such as "is not reachable (connection refused)". */
export function describeNatsProblem(problem: string | undefined): string {
  if (isNatsAuthFailure(problem))
    return "refuses the user and password (or token, credentials) of fleet.nats";
  return `is not reachable${problem === undefined ? "" : ` (${problem})`}`;
}
