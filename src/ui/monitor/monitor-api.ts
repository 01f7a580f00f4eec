import { z } from "zod";
import { type ActivityReport, activitySchema } from "../../api/management/activity-schemas.ts";
import { fleetSchema } from "../../api/management/machine-schemas.ts";
import { request } from "../daemon-api.ts";
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
  return statusSchema.parse(await (await request("/api/system/status", { signal })).json());
}

export async function readFleet(signal: AbortSignal): Promise<Fleet> {
  return fleetSchema.parse(await (await request("/api/fleet", { signal })).json());
}

export async function readEngines(signal: AbortSignal): Promise<readonly Engine[]> {
  const answer = await request("/api/models", { signal });
  const { models } = z.object({ models: z.array(engineSchema) }).parse(await answer.json());
  return models.filter(({ state }) => IN_MEMORY.has(state));
}

/** Reads the requests, events and log records after a number. */
export async function readActivity(after: number, signal: AbortSignal): Promise<ActivityReport> {
  const answer = await request(`/api/system/activity?after=${after}`, { signal });
  return activitySchema.parse(await answer.json());
}
