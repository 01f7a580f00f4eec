import { z } from "zod";
import { loadResultSchema } from "../../api/wire/models.ts";
import { type CliIo, writeLine } from "../cli-io.ts";
import { ApiError, type DaemonClient } from "./daemon-client.ts";

/** Adapters are optional: other versions of the daemon may not list them. */
const modelSchema = z.object({ adapters: z.array(z.object({ name: z.string() })).optional() });

/** "base:adapter": the part behind the last colon may name an adapter. */
const ADAPTER_NAME = /^(.+):([^:]+)$/;

/**
 * Looks up a model, or a model with one of its adapters. Returns undefined if it exists, even while it loads, otherwise
 * the daemon's error.
 */
export async function findModelError(client: DaemonClient, name: string): Promise<ApiError | undefined> {
  const found = await requestModel(client, name);
  if (!(found instanceof ApiError) || found.code === "model_loading") return undefined;
  const [, base = "", adapter = ""] = ADAPTER_NAME.exec(name) ?? [];
  if (found.type !== "not_found" || base === "") return found;
  const model = await requestModel(client, base);
  const hasAdapter = !(model instanceof ApiError) && model.adapters?.some((each) => each.name === adapter);
  return hasAdapter ? undefined : found;
}

async function requestModel(
  client: DaemonClient,
  name: string,
): Promise<z.output<typeof modelSchema> | ApiError> {
  try {
    return await client.json(modelSchema, "GET", modelPath(name));
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

/** Syntax of model names. */
const MODEL_NAME = /^[a-z\d][\w./:@-]*$/i;
/** "qwen3:0.6b" or "hf:owner/repo", but no URL, which has slashes behind the colon. */
const TAGGED_MODEL_NAME = /^[a-z][\w.-]*(?:\/[\w.-]+)*:[\w.-][\w./:@-]*$/i;
/** Words of a name and a quoted prompt. */
const NAME_AND_PROMPT = 2;

/**
 * Model that the first word of a prompt names, as in Ollama's `run MODEL PROMPT`: a model of the daemon, or a name with
 * a tag, alone or before a quoted prompt; such a name is reported as missing if there is no such model. Undefined if
 * the word belongs to the prompt.
 */
export async function modelFromFirstWord(
  client: DaemonClient,
  words: readonly string[],
): Promise<string | undefined> {
  const [first = ""] = words;
  if (!MODEL_NAME.test(first)) return undefined;
  if (words.length <= NAME_AND_PROMPT && TAGGED_MODEL_NAME.test(first)) return first;
  const missing = await findModelError(client, first);
  if (!missing) return first;
  // A fleet whose server is unreachable answers with this for any word.
  const isPromptWord =
    missing.type === "not_found" ||
    missing.type === "invalid_request" ||
    missing.code === "fleet_unreachable";
  if (isPromptWord) return undefined;
  throw missing;
}

/** URL path of a model's routes. The name, which may contain colons and slashes, is one segment. */
export function modelPath(name: string, route?: "unload" | "modelfile"): string {
  const path = `/api/models/${encodeURIComponent(name)}`;
  return route ? `${path}/${route}` : path;
}

const statusSchema = z.object({ default_model: z.string() });

/** Returns the alias of the daemon's default model; empty without models. */
export async function defaultModel(client: DaemonClient): Promise<string> {
  return (await client.json(statusSchema, "GET", "/api/system/status")).default_model;
}

const stateSchema = z.object({ state: z.string() });

/** Delay before a wait is explained. */
const LOADING_NOTICE_MS = 500;

/**
 * Runs `work`, which needs a loaded model, and prints a notice while the model loads. If the daemon does not load
 * models by itself (models.auto_load = false), loads the model and retries once.
 */
export async function withLoadedModel<Result>(
  io: CliIo,
  client: DaemonClient,
  model: string | undefined,
  work: () => Promise<Result>,
): Promise<Result> {
  const modelName = async (): Promise<string> => model ?? (await defaultModel(client));
  const reportLoading = async (alias: string): Promise<void> =>
    await writeLine(io.stderr, `Loading ${alias} ...`);
  const reportIfLoading = async (): Promise<void> => {
    const alias = await modelName();
    const { state } = await client.json(stateSchema, "GET", modelPath(alias));
    if (state === "loading") await reportLoading(alias);
  };
  // Errors of the notice are ignored: the work itself reports them.
  const notice = setTimeout(() => void reportIfLoading().catch(() => undefined), LOADING_NOTICE_MS);
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "model_not_loaded") throw error;
  } finally {
    clearTimeout(notice);
  }
  const alias = await modelName();
  await reportLoading(alias);
  try {
    await client.json(loadResultSchema, "POST", "/api/models/load", { alias, context_size: 0 });
  } catch (error) {
    // Another client was quicker.
    if (!(error instanceof ApiError) || error.code !== "model_already_loaded") throw error;
  }
  return work();
}
