import { z } from "zod";

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
