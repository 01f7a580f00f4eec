import { z } from "zod";
import { loadResultSchema } from "../../dialects/management/model-schemas.ts";
import type { CliIo } from "../cli-io.ts";
import { writeLine } from "../terminal/write.ts";
import { ApiError } from "./api-error.ts";
import type { DaemonClient } from "./daemon-client.ts";

const statusSchema = z.object({ default_model: z.string() });

/**
 * Does something that needs a loaded model. When it is refused because the model is on disk but not loaded, loads
 * the model, says so, and retries once.
 */
export async function withLoadedModel<Result>(
  io: CliIo,
  client: DaemonClient,
  model: string | undefined,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "model_not_loaded") throw error;
  }
  const alias = model ?? (await client.json(statusSchema, "GET", "/api/system/status")).default_model;
  await writeLine(io.stderr, `Loading ${alias} ...`);
  try {
    await client.json(loadResultSchema, "POST", "/api/models/load", { alias, context_size: 0 });
  } catch (error) {
    // Another client was quicker.
    if (!(error instanceof ApiError) || error.code !== "model_already_loaded") throw error;
  }
  return work();
}
