import { signal as value } from "@preact/signals";
import { z } from "zod";
import { defaultModelSchema } from "../../api/management/default-model-routes.ts";
import { hubFilesSchema, hubSearchSchema } from "../../api/management/hub-schemas.ts";
import { modelDetailSchema, modelfileSchema } from "../../api/management/model-schemas.ts";
import { jsonLines, type ListedModel, post, request } from "../daemon-api.ts";
import { refresh, showProblem } from "../page-state.ts";

/** What the room of the models asks the daemon. All functions throw an error with a message for people. */

export type ModelDetail = z.output<typeof modelDetailSchema>;
export type HubFiles = z.output<typeof hubFilesSchema>;
export type HubOffer = HubFiles["models"][number];
export type HubRepo = z.output<typeof hubSearchSchema>["repos"][number];
export type Suggestion = z.output<typeof defaultModelSchema>;

/** Settings of a load; absent ones are the model's own, or the daemon's. */
export interface LoadSettings {
  readonly context_size?: number;
  readonly gpu_layers?: number;
  readonly set_default?: boolean;
}

function pathOf(alias: string): string {
  return `/api/models/${encodeURIComponent(alias)}`;
}

async function ask<Schema extends z.ZodType>(
  schema: Schema,
  path: string,
  init?: RequestInit,
): Promise<z.output<Schema>> {
  const answer = await request(path, init);
  return schema.parse(await answer.json());
}

export async function showModel(alias: string): Promise<ModelDetail> {
  return await ask(modelDetailSchema, pathOf(alias));
}

export async function loadWith(alias: string, settings: LoadSettings): Promise<void> {
  await request("/api/models/load", post({ alias, context_size: 0, ...settings }));
}

export async function unloadModel(alias: string): Promise<void> {
  await request(`${pathOf(alias)}/unload`, { method: "POST" });
}

export async function makeDefault(alias: string): Promise<void> {
  await request("/api/models/default", post({ alias }));
}

export async function copyModel(source: string, destination: string): Promise<void> {
  await request("/api/models/copy", post({ source, destination }));
}

export async function deleteModel(alias: string): Promise<void> {
  await request(pathOf(alias), { method: "DELETE" });
}

export async function readModelfile(alias: string): Promise<string> {
  return (await ask(modelfileSchema, `${pathOf(alias)}/modelfile`)).modelfile;
}

export async function createModel(alias: string, modelfile: string): Promise<void> {
  await request("/api/models/create", post({ alias, modelfile }));
}

export async function listSuggestions(): Promise<Suggestion[]> {
  return await ask(z.array(defaultModelSchema), "/api/defaults");
}

export async function searchHub(query: string, limit: number, signal: AbortSignal): Promise<HubRepo[]> {
  const path = `/api/hub/search?${new URLSearchParams({ query, limit: String(limit) }).toString()}`;
  return (await ask(hubSearchSchema, path, { signal })).repos;
}

export async function listHubFiles(repo: string): Promise<HubFiles> {
  return await ask(hubFilesSchema, `/api/hub/files?repo=${encodeURIComponent(repo)}`);
}

export async function discardPull(name: string): Promise<void> {
  await request("/api/hub/discard", post({ name }));
}

const gpuSchema = z.object({
  gpu: z.object({ adapter: z.string().optional(), problem: z.string().optional() }),
});

/** The GPU that models use, or why there is none. */
export async function findGpu(): Promise<z.output<typeof gpuSchema>["gpu"]> {
  return (await ask(gpuSchema, "/api/system/status")).gpu;
}

const pullLineSchema = z.object({
  error: z.object({ message: z.string() }).optional(),
  status: z.enum(["downloading", "verifying", "success"]).optional(),
  downloaded_bytes: z.number().optional(),
  total_bytes: z.number().optional(),
  note: z.string().optional(),
  model: z.string().optional(),
});
type PullLine = z.output<typeof pullLineSchema>;

/** Pulls a model, and gives what the daemon says while it does; an abort pauses it. */
export async function* pullModel(
  name: string,
  signal: AbortSignal,
): AsyncGenerator<PullLine, void, undefined> {
  const answer = await request("/api/models/pull", post({ name, stream: true }, signal));
  for await (const line of jsonLines(answer)) {
    const parsed = pullLineSchema.parse(line);
    if (parsed.error) throw new Error(parsed.error.message);
    yield parsed;
  }
}

/** What the room of the models is doing. */

/** A question over the page. */
type OpenDialog =
  | { readonly kind: "load" | "copy" | "delete"; readonly model: ListedModel }
  /** Without a model: a new Modelfile. */
  | { readonly kind: "modelfile"; readonly model: ListedModel | undefined };

export const openDialog = value<OpenDialog | undefined>(undefined);

/** What is being done with a model, in words, by its name. */
export const doings = value<ReadonlyMap<string, string>>(new Map());

/** Says what is done with a model while it is, and shows what fails. */
export async function doing(alias: string, what: string, action: () => Promise<void>): Promise<void> {
  doings.value = new Map([...doings.value, [alias, what]]);
  try {
    await action();
  } catch (error) {
    showProblem(error);
  } finally {
    await refresh();
    doings.value = new Map([...doings.value].filter(([name]) => name !== alias));
  }
}
