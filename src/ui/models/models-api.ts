import { signal as createSignal } from "@preact/signals";
import { z } from "zod";
import { defaultModelSchema, hubFilesSchema, hubSearchSchema } from "../../api/wire/hub.ts";
import { modelDetailSchema, modelfileSchema } from "../../api/wire/models.ts";
import { fetchJson, jsonLines, type ListedModel, post, request } from "../daemon-api.ts";
import { refresh, showProblem } from "../page-state.ts";

/** Requests of the view Models. All functions throw errors with a message for the user. */

export type ModelDetail = z.output<typeof modelDetailSchema>;
export type HubFiles = z.output<typeof hubFilesSchema>;
export type HubOffer = HubFiles["models"][number];
export type HubRepo = z.output<typeof hubSearchSchema>["repos"][number];
export type Suggestion = z.output<typeof defaultModelSchema>;

function modelPath(alias: string): string {
  return `/api/models/${encodeURIComponent(alias)}`;
}

export async function readModel(alias: string): Promise<ModelDetail> {
  return await fetchJson(modelDetailSchema, modelPath(alias));
}

export async function unloadModel(alias: string): Promise<void> {
  await request(`${modelPath(alias)}/unload`, { method: "POST" });
}

export async function makeDefault(alias: string): Promise<void> {
  await request("/api/models/default", post({ alias }));
}

export async function copyModel(source: string, destination: string): Promise<void> {
  await request("/api/models/copy", post({ source, destination }));
}

export async function deleteModel(alias: string): Promise<void> {
  await request(modelPath(alias), { method: "DELETE" });
}

export async function readModelfile(alias: string): Promise<string> {
  return (await fetchJson(modelfileSchema, `${modelPath(alias)}/modelfile`)).modelfile;
}

export async function createModel(alias: string, modelfile: string): Promise<void> {
  await request("/api/models/create", post({ alias, modelfile }));
}

export async function listSuggestions(): Promise<Suggestion[]> {
  return await fetchJson(z.array(defaultModelSchema), "/api/defaults");
}

export async function searchHub(query: string, limit: number, signal: AbortSignal): Promise<HubRepo[]> {
  const path = `/api/hub/search?${new URLSearchParams({ query, limit: String(limit) }).toString()}`;
  return (await fetchJson(hubSearchSchema, path, { signal })).repos;
}

export async function listHubFiles(repo: string): Promise<HubFiles> {
  return await fetchJson(hubFilesSchema, `/api/hub/files?repo=${encodeURIComponent(repo)}`);
}

export async function discardPull(name: string): Promise<void> {
  await request("/api/hub/discard", post({ name }));
}

const gpuSchema = z.object({
  gpu: z.object({ adapter: z.string().optional(), problem: z.string().optional() }),
});

/** Returns the GPU that models use, or the reason why there is none. */
export async function readGpu(): Promise<z.output<typeof gpuSchema>["gpu"]> {
  return (await fetchJson(gpuSchema, "/api/system/status")).gpu;
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

/** Pulls a model, and yields the daemon's progress reports. An abort pauses the download. */
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

type OpenDialog =
  | { readonly kind: "load" | "copy" | "delete"; readonly model: ListedModel }
  /** Without a model, the dialog creates a new Modelfile. */
  | { readonly kind: "modelfile"; readonly model: ListedModel | undefined };

export const openDialog = createSignal<OpenDialog | undefined>(undefined);

export function closeDialog(): void {
  openDialog.value = undefined;
}

/** Running actions, such as "loading …", by model name. */
export const activities = createSignal<ReadonlyMap<string, string>>(new Map());

/** Runs an action on a model, shows its description meanwhile, and shows its error if it fails. */
export async function runAction(
  alias: string,
  description: string,
  action: () => Promise<void>,
): Promise<void> {
  activities.value = new Map([...activities.value, [alias, description]]);
  try {
    await action();
  } catch (error) {
    showProblem(error);
  } finally {
    await refresh();
    activities.value = new Map([...activities.value].filter(([name]) => name !== alias));
  }
}
