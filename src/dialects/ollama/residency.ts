import { ServiceError } from "../../errors/service-error.ts";
import type { Model, Models, Residency } from "../../models/model.ts";
import type { ResidencyReason } from "./summary.ts";

/**
 * Makes way for the context that a request asks for: an idle model that was loaded with less is unloaded, so that
 * acquiring it loads it anew. One that other requests use stays as it is.
 * @returns how to acquire it; a model that was to stay for good still is
 */
export async function fitContext(
  models: Pick<Models, "unload">,
  model: Model,
  residency: Residency,
): Promise<Residency> {
  const { contextSize } = residency;
  const fits = contextSize === undefined || model.contextSize >= contextSize;
  if (fits || model.state !== "loaded" || model.activeRequests > 0) return residency;
  await unloadIfLoaded(models, model.alias);
  const stays = model.expiresAt === undefined ? Number.POSITIVE_INFINITY : undefined;
  return { ...residency, keepAliveMs: residency.keepAliveMs ?? stays };
}

/** What a request without a prompt asks for: to load the model, or with a keep_alive of 0 to unload it. */
export async function loadOrUnload(
  models: Pick<Models, "acquire" | "unload">,
  model: Model,
  wished: Residency,
  signal: AbortSignal,
): Promise<ResidencyReason> {
  if (wished.keepAliveMs === 0) {
    if (model.state === "loaded") await unload(models, model, signal);
    return "unload";
  }
  const residency = await fitContext(models, model, wished);
  (await models.acquire(model.alias, signal, residency))[Symbol.dispose]();
  return "load";
}

/** At once when it is idle, else with the end of its last request. */
async function unload(
  models: Pick<Models, "acquire" | "unload">,
  { alias, activeRequests }: Model,
  signal: AbortSignal,
): Promise<void> {
  if (activeRequests === 0) return await unloadIfLoaded(models, alias);
  (await models.acquire(alias, signal, { keepAliveMs: 0 }))[Symbol.dispose]();
}

async function unloadIfLoaded(models: Pick<Models, "unload">, alias: string): Promise<void> {
  try {
    await models.unload(alias);
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== "model_already_unloaded") throw error;
  }
}
