import { ServiceError } from "../../errors/service-error.ts";
import type { ModelFit, ModelSizes } from "./model-fit.ts";
import { NO_SETTINGS } from "../model.ts";
import { assumedModel } from "./assumed-model.ts";
import type { LoadPlanner } from "./load-planner.ts";
import type { MemoryBudget } from "./memory-budget.ts";

/** Estimates whether a model of these sizes could be loaded on this machine if nothing else were. */
export async function estimateFit(
  sizes: ModelSizes,
  planner: Pick<LoadPlanner, "likelyContext" | "estimate">,
  memory: Pick<MemoryBudget, "check">,
): Promise<ModelFit> {
  const model = assumedModel(sizes);
  let neededBytes = sizes.fileBytes;
  try {
    const { spec, bytes, gpuBytes } = await planner.estimate(model);
    neededBytes = bytes;
    memory.check("The model", bytes);
    const { contextSize, gpuLayers, gpu } = spec;
    const layers = gpu && gpuLayers < 0 ? gpu.layers : gpuLayers;
    return {
      fits: true,
      neededBytes,
      contextSize,
      ...(gpu && { gpu: { layers, allLayers: gpu.layers, bytes: gpuBytes } }),
    };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { contextSize } = planner.likelyContext({ gguf: model, settings: NO_SETTINGS });
    return { fits: false, neededBytes, contextSize, reason: error.message };
  }
}
