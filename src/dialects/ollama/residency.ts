import type { ErrorCode } from "../../errors/error-codes.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { Model } from "../../models/model.ts";
import type { Models, Residency } from "../../models/models.ts";
import type { ResidencyReason } from "./ollama-answer-fields.ts";

/** How loading fails when the context is too large. */
const LOAD_FAILURES: readonly ErrorCode[] = ["insufficient_memory", "model_load_failed"];

/**
 * Runs a request with the context size it asks for. An idle model with a smaller context is unloaded first, so that the
 * request reloads it; a model in use keeps its context. A model without expiry stays so, and is reloaded with its
 * previous context when the larger one fails.
 */
export async function withContext<Result>(
  models: Pick<Models, "load" | "unload">,
  model: Model,
  residency: Residency,
  run: (residency: Residency) => Promise<Result>,
): Promise<Result> {
  const { contextSize } = residency;
  const fits = contextSize === undefined || model.contextSize >= contextSize;
  if (fits || model.state !== "loaded" || (await tryUnload(models, model)) === "busy") {
    return await run(residency);
  }
  if (model.expiresAt !== undefined) return await run(residency);
  try {
    return await run({ ...residency, keepAliveMs: residency.keepAliveMs ?? Number.POSITIVE_INFINITY });
  } catch (error) {
    if (hasCode(error, LOAD_FAILURES)) await restore(models, model);
    throw error;
  }
}

/** Handles a request without a prompt: loads the model, or unloads it with a keep_alive of 0. */
export async function loadOrUnload(
  models: Pick<Models, "acquire" | "load" | "unload">,
  model: Model,
  requested: Residency,
  signal: AbortSignal,
): Promise<ResidencyReason> {
  const acquire = async (residency: Residency): Promise<void> =>
    (await models.acquire(model.alias, signal, residency))[Symbol.dispose]();
  if (requested.keepAliveMs === 0) {
    // A model in use is unloaded after its last request.
    if ((await tryUnload(models, model)) === "busy") await acquire({ keepAliveMs: 0 });
    return "unload";
  }
  await withContext(models, model, requested, acquire);
  return "load";
}

async function tryUnload(models: Pick<Models, "unload">, { alias }: Model): Promise<"unloaded" | "busy"> {
  try {
    await models.unload(alias, { onlyIdle: true });
  } catch (error) {
    if (hasCode(error, ["model_busy"])) return "busy";
    if (!hasCode(error, ["model_already_unloaded"])) throw error;
  }
  return "unloaded";
}

async function restore(
  models: Pick<Models, "load">,
  { alias, contextSize, gpuLayers }: Model,
): Promise<void> {
  try {
    await models.load({ alias, contextSize, gpuLayers });
  } catch {
    // The client gets the first error, that of its own request.
  }
}

function hasCode(error: unknown, codes: readonly ErrorCode[]): boolean {
  return error instanceof ServiceError && codes.includes(error.code);
}
