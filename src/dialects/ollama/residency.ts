import type { ErrorCode } from "../../errors/error-codes.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { Model, Models, Residency } from "../../models/model.ts";
import type { ResidencyReason } from "./ollama-answer-fields.ts";

/** How a load fails that asked for too much. */
const LOAD_FAILURES: readonly ErrorCode[] = ["insufficient_memory", "model_load_failed"];

/**
 * Runs what acquires a model, with the context that a request asks for: an idle model that was loaded with less is
 * unloaded before, so that acquiring it loads it anew. One that other requests use stays as it is. A model that was
 * to stay for good still is; when the larger context cannot be had, it is there again as it was before.
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

/** What a request without a prompt asks for: to load the model, or with a keep_alive of 0 to unload it. */
export async function loadOrUnload(
  models: Pick<Models, "acquire" | "load" | "unload">,
  model: Model,
  wished: Residency,
  signal: AbortSignal,
): Promise<ResidencyReason> {
  const acquire = async (residency: Residency): Promise<void> =>
    (await models.acquire(model.alias, signal, residency))[Symbol.dispose]();
  if (wished.keepAliveMs === 0) {
    // What is in use goes with the end of its last request.
    if ((await tryUnload(models, model)) === "busy") await acquire({ keepAliveMs: 0 });
    return "unload";
  }
  await withContext(models, model, wished, acquire);
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
    // The client is told why its own wish failed, which came first.
  }
}

function hasCode(error: unknown, codes: readonly ErrorCode[]): boolean {
  return error instanceof ServiceError && codes.includes(error.code);
}
