import { z } from "zod";
import { loadResultSchema } from "../../dialects/management/model-schemas.ts";
import type { CliIo } from "../cli-io.ts";
import { writeLine } from "../terminal/write.ts";
import { ApiError } from "./api-error.ts";
import type { DaemonClient } from "./daemon-client.ts";
import { modelPath } from "./model-path.ts";

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
