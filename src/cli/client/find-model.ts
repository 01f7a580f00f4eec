import { z } from "zod";
import { loadResultSchema } from "../../api/management/model-schemas.ts";
import { type CliIo, writeLine } from "../cli-io.ts";
import { ApiError, type DaemonClient } from "./daemon-client.ts";

/** Daemons of other versions may not tell adapters. */
const foundSchema = z.object({ adapters: z.array(z.object({ name: z.string() })).optional() });

/** "base:adapter": what is behind the last colon may be one of its adapters. */
const WITH_ADAPTER = /^(.+):([^:]+)$/;

/**
 * Looks for a model by its name, or by that of a model with one of its adapters. Returns undefined if it is there, even if it
 * cannot answer yet, and otherwise what the daemon says.
 */
export async function lookForModel(client: DaemonClient, name: string): Promise<ApiError | undefined> {
  const found = await find(client, name);
  if (!(found instanceof ApiError) || found.code === "model_loading") return undefined;
  const [, base = "", adapter = ""] = WITH_ADAPTER.exec(name) ?? [];
  if (found.type !== "not_found" || base === "") return found;
  const model = await find(client, base);
  const hasAdapter = !(model instanceof ApiError) && model.adapters?.some((each) => each.name === adapter);
  return hasAdapter ? undefined : found;
}

async function find(client: DaemonClient, name: string): Promise<z.output<typeof foundSchema> | ApiError> {
  try {
    return await client.json(foundSchema, "GET", modelPath(name));
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

/** What a name may be made of; a sentence has spaces, or is quoted by none who write `run MODEL PROMPT`. */
const NAME = /^[a-z\d][\w./:@-]*$/i;
/** "qwen3:0.6b" or "hf:owner/repo". A URL has slashes behind its colon. */
const TAGGED_NAME = /^[a-z][\w.-]*(?:\/[\w.-]+)*:[\w.-][\w./:@-]*$/i;
/** A name and a quoted prompt. */
const NAME_AND_PROMPT = 2;

/**
 * The model that the first word of a prompt names, as Ollama's `run MODEL PROMPT` has it: one that the daemon has, or a name
 * with a tag alone or before a quoted prompt, so that one that is not there yet is said to be missing. Undefined if it is a
 * word of the prompt.
 */
export async function modelFirst(
  client: DaemonClient,
  words: readonly string[],
): Promise<string | undefined> {
  const [first = ""] = words;
  if (!NAME.test(first)) return undefined;
  if (words.length <= NAME_AND_PROMPT && TAGGED_NAME.test(first)) return first;
  const missing = await lookForModel(client, first);
  if (!missing) return first;
  // In a fleet whose server is away, that is the answer to any word.
  const isWord =
    missing.type === "not_found" ||
    missing.type === "invalid_request" ||
    missing.code === "fleet_unreachable";
  if (isWord) return undefined;
  throw missing;
}

/** Path of a model's own routes. A name may hold colons and slashes, as hub specs do: each is one segment here. */
export function modelPath(name: string, route?: "unload" | "modelfile"): string {
  const path = `/api/models/${encodeURIComponent(name)}`;
  return route ? `${path}/${route}` : path;
}

const statusSchema = z.object({ default_model: z.string() });
const stateSchema = z.object({ state: z.string() });

/** A person waits this long without wondering why. */
const NOTICE_AFTER_MS = 500;

/**
 * Does something that needs a loaded model, and says so when it waits for the model to be loaded. Where the daemon loads
 * nothing by itself (models.auto_load = false), loads the model and retries once.
 */
export async function withLoadedModel<Result>(
  io: CliIo,
  client: DaemonClient,
  model: string | undefined,
  work: () => Promise<Result>,
): Promise<Result> {
  const named = async (): Promise<string> =>
    model ?? (await client.json(statusSchema, "GET", "/api/system/status")).default_model;
  const say = async (alias: string): Promise<void> => await writeLine(io.stderr, `Loading ${alias} ...`);
  const sayIfLoading = async (): Promise<void> => {
    const alias = await named();
    const { state } = await client.json(stateSchema, "GET", modelPath(alias));
    if (state === "loading") await say(alias);
  };
  // Only a notice: what is wrong, the work itself will say.
  const notice = setTimeout(() => void sayIfLoading().catch(() => undefined), NOTICE_AFTER_MS);
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "model_not_loaded") throw error;
  } finally {
    clearTimeout(notice);
  }
  const alias = await named();
  await say(alias);
  try {
    await client.json(loadResultSchema, "POST", "/api/models/load", { alias, context_size: 0 });
  } catch (error) {
    // Another client was quicker.
    if (!(error instanceof ApiError) || error.code !== "model_already_loaded") throw error;
  }
  return work();
}
