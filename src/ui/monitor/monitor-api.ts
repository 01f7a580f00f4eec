import { z } from "zod";
import { type ActivityReport, activitySchema } from "../../api/wire/activity.ts";
import { fleetSchema } from "../../api/wire/machines.ts";
import { fetchJson, request } from "../daemon-api.ts";
import { formatBytes, formatInteger, formatNumber } from "../../json/quantities.ts";
import { Metrics } from "./samples.ts";

const engineSchema = z.object({
  alias: z.string(),
  state: z.string(),
  context_size: z.number(),
  gpu_layers: z.number(),
  active_requests: z.number(),
  quantization: z.string(),
  memory_bytes: z.number().optional(),
  gpu_memory_bytes: z.number().optional(),
  slots: z.number().optional(),
  last_used_at: z.string().optional(),
  expires_at: z.string().optional(),
});
export type Engine = z.output<typeof engineSchema>;

const statusSchema = z.object({
  version: z.string(),
  llama_cpp: z.string(),
  uptime_secs: z.number(),
  kernels: z.string(),
  stats: z.object({
    requests_total: z.number(),
    tokens_generated: z.number(),
    memory_used_bytes: z.number(),
    memory_total_bytes: z.number(),
  }),
  gpu: z.object({
    available: z.boolean(),
    adapter: z.string().optional(),
    problem: z.string().optional(),
    adapters: z.array(
      z.object({
        name: z.string(),
        backend: z.string(),
        usable: z.boolean(),
        problem: z.string().optional(),
        memory_bytes: z.number().optional(),
      }),
    ),
  }),
  sandbox: z.object({
    mode: z.string(),
    wall: z.string(),
    parts: z.array(z.string()),
    problem: z.string().optional(),
  }),
});
export type Status = z.output<typeof statusSchema>;

export type Fleet = z.output<typeof fleetSchema>;

/** States of models that are at least partly in memory. */
const IN_MEMORY = new Set(["loading", "loaded", "unloading"]);

export async function readMetrics(signal: AbortSignal): Promise<Metrics> {
  return new Metrics(await (await request("/metrics", { signal })).text());
}

export async function readStatus(signal: AbortSignal): Promise<Status> {
  return await fetchJson(statusSchema, "/api/system/status", { signal });
}

export async function readFleet(signal: AbortSignal): Promise<Fleet> {
  return await fetchJson(fleetSchema, "/api/fleet", { signal });
}

export async function readEngines(signal: AbortSignal): Promise<readonly Engine[]> {
  const { models } = await fetchJson(z.object({ models: z.array(engineSchema) }), "/api/models", { signal });
  return models.filter(({ state }) => IN_MEMORY.has(state));
}

/** Reads the requests, events and log records after a number. */
export async function readActivity(after: number, signal: AbortSignal): Promise<ActivityReport> {
  return await fetchJson(activitySchema, `/api/system/activity?after=${after}`, { signal });
}

export type FleetMachine = Fleet["machines"][number];
export type FleetModel = FleetMachine["models"][number];

export type FactList = readonly (readonly [name: string, fact: string])[];

/** Describes the load and the hardware of a machine in the fleet. */
export function machineFacts(machine: FleetMachine): FactList {
  const { running, waiting, memory, processor, gpus, version, engine } = machine;
  return [
    [
      "Requests",
      `${formatInteger(running)} running${waiting > 0 ? `, ${formatInteger(waiting)} waiting` : ""}`,
    ],
    ["Memory of models", `${formatBytes(memory.used_bytes)} of ${formatBytes(memory.models_bytes)}`],
    ["Processors", `${formatInteger(processor.usable)} × ${processor.name}`],
    ["GPU", gpus.map(({ name }) => name).join(", ") || "none"],
    ["Version", version],
    // Failover continues an answer only on a machine with the same engine build.
    ["Engine", engine.slice(0, 8)],
  ];
}

/** Describes the load of a model on a machine, or its size if it is not loaded. */
export function describeModel(model: FleetModel): string {
  const { loaded, running = 0, waiting = 0, slots = 0, size_bytes: size } = model;
  const { decode_tokens_per_second: speed = 0 } = model;
  const words = loaded
    ? [`${formatInteger(running)} of ${formatInteger(slots)} requests`]
    : [formatBytes(size)];
  if (waiting > 0) words.push(`${formatInteger(waiting)} waiting`);
  if (speed > 0) words.push(`${formatNumber(speed)} tokens/s`);
  return words.join(", ");
}
