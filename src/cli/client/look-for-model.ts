import { z } from "zod";
import { ApiError } from "./api-error.ts";
import type { DaemonClient } from "./daemon-client.ts";
import { modelPath } from "./model-path.ts";

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
