import { statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Logger } from "pino";
import { ConfigError } from "../config/config-error.ts";
import type { Config } from "../config/schema.ts";
import { checkHeapLimit, estimateMemory } from "../engine/estimate-memory.ts";
import type { GpuFinder } from "../engine/gpu/gpu-finder.ts";
import { guardGpu } from "../engine/gpu/gpu-guard.ts";
import { bytesOnGpu, partOnCpu, usableMemory } from "../engine/gpu/gpu-memory.ts";
import { placeOnGpu } from "../engine/gpu/place-on-gpu.ts";
import type { EngineSpec } from "../engine/protocol/engine-spec.ts";
import type { PreparedEngine } from "../engine/prepare-engine.ts";
import { createEngineStarter } from "../engine/start-engine.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { ServiceEvents } from "../events/service-events.ts";
import { DiskHubStore } from "../models/hub/disk-hub-store.ts";
import type { GgufSummary, Models } from "../models/model.ts";
import { printModelfile } from "../models/modelfile/print-modelfile.ts";
import { readModelfile } from "../models/modelfile/read-modelfile.ts";
import { createModelsService } from "../models/models-service.ts";
import { readAliases, type AliasTable } from "../models/names/alias-table.ts";
import { createNameResolver } from "../models/names/name-resolver.ts";
import { DaemonStartError } from "./daemon-start-error.ts";

/** Models that ship with the project: two folders up from src/daemon and from dist/src/daemon alike. */
const SHIPPED_MODELS = fileURLToPath(new URL("../../models/", import.meta.url));

/** Puts the models layer together with its store, its names and the engines below it. */
export async function createModels(
  config: Config,
  events: ServiceEvents,
  logger: Logger,
  gpu: GpuFinder,
  { wasmPath, kernels, heapLimitBytes }: PreparedEngine,
): Promise<Models> {
  return await startable(
    createModelsService({
      config,
      startEngine: guardGpu({
        start: createEngineStarter({
          loadTimeoutMs: config.engine.load_timeout,
          stallTimeoutMs: config.engine.stall_timeout,
          wasmPath,
          heapLimitBytes,
        }),
        finder: gpu,
        onLoss: (model, reason) => events.emit({ type: "gpu-lost", model, reason }),
        onReduction: (model, { gpuLayers, sharedContext }, reason) =>
          logger.warn(
            { model, gpuLayers, sharedContext, reason },
            "The GPU's memory is full; the model is tried with less of it",
          ),
        onShorterStep: (model, batchSize, stepMs) =>
          logger.info(
            { model, batchSize, stepMs: Math.round(stepMs) },
            "The GPU takes long for a step; the model is loaded again with shorter ones",
          ),
        isStepFixed: config.engine.batch_size > 0,
        onFallback: (model, reason) => events.emit({ type: "gpu-abandoned", model, reason }),
      }),
      placeLayers: async (gguf, spec, layers, taken) =>
        await placeOnGpu(gpu, spec, gguf, {
          layers,
          memory: config.gpu.memory,
          taken,
          batchSize: config.engine.batch_size,
          besides: bytesBesides(spec),
        }),
      kernels,
      estimateMemory: (gguf, spec) => memoryNeeded(gguf, spec, heapLimitBytes),
      gpuMemory: {
        budget: () => usableMemory(gpu.adapter ?? {}, config.gpu.memory),
        estimate: (gguf, spec) => bytesOnGpu(gguf, spec, bytesBesides(spec)),
      },
      hub: new DiskHubStore({
        cacheDir: config.cache_dir,
        hubUrl: config.hub_url,
        token: config.hub_token,
      }),
      resolver: createNameResolver(aliases(config.models.aliases_file)),
      readModelfile,
      printModelfile,
      shippedDir: SHIPPED_MODELS,
      events,
      logger,
    }),
  );
}

/** What the models layer says of the cache folder is for the user who starts the daemon. */
async function startable(models: Promise<Models>): Promise<Models> {
  try {
    return await models;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    throw new DaemonStartError(`${error.message} Choose another with SERVICE_CACHE_DIR or --cache-dir.`, {
      cause: error,
    });
  }
}

function aliases(ownFile: string | undefined): AliasTable {
  try {
    return readAliases(ownFile);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new DaemonStartError(error.message, { cause: error });
  }
}

/** Bytes at the peak of loading and running; throws insufficient_memory for what no engine can hold. */
function memoryNeeded(gguf: GgufSummary, spec: EngineSpec, heapLimitBytes: number): number {
  const onCpu = partOnCpu(gguf, spec);
  const estimate = estimateMemory({
    fileBytes: onCpu.fileBytes + bytesBesides(spec),
    kvBytesPerToken: gguf.kvBytesPerToken * onCpu.kvShare,
    vocabSize: gguf.vocabSize,
    embeddingLength: gguf.embeddingLength,
    spec,
  });
  checkHeapLimit(estimate, heapLimitBytes);
  return estimate.totalBytes;
}

/** Bytes of the files beside the model's own: the projector and the adapters. */
function bytesBesides({ projectorFile, adapters }: EngineSpec): number {
  const files = [projectorFile, ...adapters.map(({ path }) => path)];
  return files.reduce((sum, file) => sum + (file === undefined ? 0 : statSync(file).size), 0);
}
