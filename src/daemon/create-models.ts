import { statSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import type { Logger } from "pino";
import { ConfigError } from "../config/read-config-file.ts";
import type { Config } from "../config/schema.ts";
import type { ManagementServices } from "../api/management/management-services.ts";
import type { EngineImage } from "../engine/engine-image.ts";
import type { StartEngine } from "../engine/engine.ts";
import { checkHeapLimit, estimateMemory, type MemoryEstimate } from "../engine/estimate-memory.ts";
import type { GpuFinder } from "../engine/gpu/gpu-finder.ts";
import { guardGpu } from "../engine/gpu/gpu-guard.ts";
import { bytesOnGpu, partOnCpu, usableMemory } from "../engine/gpu/gpu-memory.ts";
import { offloadToGpu } from "../engine/gpu/offload-to-gpu.ts";
import { checkUserLimits } from "../engine/machine-limits.ts";
import type { EngineSpec } from "../engine/protocol/engine-spec.ts";
import { createTensorQuantizer } from "../engine/quantize/quantize-tensors.ts";
import { createEngineStarter } from "../engine/start-engine.ts";
import { createTemplateTrial } from "../engine/try-template.ts";
import type { SandboxFinder } from "../engine/sandbox/sandbox-finder.ts";
import { ServiceError } from "../errors/service-error.ts";
import { reportFailure, type ServiceEvents } from "../events/service-events.ts";
import { type UserLimits, userLimits } from "../machine/user-limits.ts";
import { DiskHubStore } from "../models/hub/disk-hub-store.ts";
import { HubCatalog } from "../models/hub/hub-catalog.ts";
import { readMachineMemory } from "../models/loading/available-memory.ts";
import type { GgufSummary } from "../models/model.ts";
import { ModelsService } from "../models/models-service.ts";
import type { Models } from "../models/models.ts";
import { type AliasTable, readAliases } from "../models/names/alias-table.ts";
import { NameResolver } from "../models/names/name-resolver.ts";
import { DaemonStartError } from "./listen.ts";
import { isBatchWork } from "./run-batch-line.ts";

/** Folder of the shipped models: two levels above src/daemon and dist/src/daemon. */
const SHIPPED_MODELS_FOLDER = fileURLToPath(new URL("../../models/", import.meta.url));

/** Small model on which chat templates are tried. */
const TRIAL_MODEL = `${SHIPPED_MODELS_FOLDER}daybreak-mini.gguf`;

/** Creates the models service from the store, the name resolver and the engines. */
export async function createModels(
  config: Config,
  events: ServiceEvents,
  logger: Logger,
  gpu: GpuFinder,
  image: EngineImage,
  sandbox: SandboxFinder,
): Promise<{ readonly models: Models; readonly hub: HubCatalog; readonly store: DiskHubStore }> {
  const { kernels, heapLimitBytes } = image.prepared;
  const limits = userLimits();
  const { cache_dir: cacheDir, hub_url: hubUrl, hub_token: token } = config;
  const hub = new DiskHubStore({ cacheDir, hubUrl, token });
  // Not awaited: nothing depends on it.
  hub.removeLeftovers().catch((error: unknown) => {
    logger.warn({ err: error }, "Cannot remove leftovers of killed processes from the cache");
  });
  const start = startWithImage(config, image, sandbox);
  const models = await withStartError(
    ModelsService.create({
      config,
      isLowPriority: isBatchWork,
      tryTemplate: createTemplateTrial(start, TRIAL_MODEL),
      quantizeTensors: createTensorQuantizer({ findSandbox: () => sandbox.find() }),
      startEngine: guardGpu({
        start,
        finder: gpu,
        onLoss: (model, reason) => events.emit({ type: "gpu-lost", model, reason }),
        onReduction: (model, { gpuLayers, sharedContext }, reason) =>
          logger.warn(
            { model, gpuLayers, sharedContext, reason },
            "The GPU's memory is full; retrying with less of it",
          ),
        onShorterStep: (model, batchSize, stepMs) =>
          logger.info(
            { model, batchSize, stepMs: Math.round(stepMs) },
            "The GPU takes long for a step; reloading the model with shorter ones",
          ),
        isStepFixed: config.engine.batch_size > 0,
        onFallback: (model, reason) => events.emit({ type: "gpu-abandoned", model, reason }),
      }),
      kernels,
      memory: {
        estimate: (gguf, spec) => memoryNeeded(gguf, spec, heapLimitBytes, limits),
        // Layers may end up on the CPU, so the limit is that without offload.
        heapLimit: (gguf, spec) => estimateFor(gguf, { ...spec, gpuLayers: 0 }).heapLimitBytes,
        estimateGpu: (gguf, spec) => bytesOnGpu(gguf, spec, auxiliaryBytes(spec)),
        gpuBudget: () => usableMemory(gpu.adapter ?? {}, config.gpu.memory),
        offloadLayers: async (gguf, spec, layers, taken) =>
          await offloadToGpu(gpu, spec, gguf, {
            layers,
            memory: config.gpu.memory,
            replay: config.gpu.replay,
            usedByOthers: taken,
            batchSize: config.engine.batch_size,
            extraBytes: auxiliaryBytes(spec),
          }),
        machine: readMachineMemory,
      },
      hub,
      resolver: new NameResolver(aliases(config.models.aliases_file)),
      shippedDir: SHIPPED_MODELS_FOLDER,
      events,
      logger,
    }),
  );
  return { models, hub: new HubCatalog(hub), store: hub };
}

/** Returns a function that starts engines with the current image, which is rebuilt if it was deleted. */
function startWithImage(
  { engine, cache_dir: cacheDir }: Pick<Config, "engine" | "cache_dir">,
  image: EngineImage,
  sandbox: SandboxFinder,
): StartEngine {
  return async (spec, options) => {
    const { wasmPath, heapLimitBytes } = await image.ensure();
    const start = createEngineStarter({
      loadTimeoutMs: engine.load_timeout,
      stallTimeoutMs: engine.stall_timeout,
      programCache: path.join(cacheDir, "gpu"),
      wasmPath,
      heapLimitBytes,
      findSandbox: () => sandbox.find(),
    });
    return await start(spec, options);
  };
}

/** Adds advice for the user to errors of the cache folder. */
async function withStartError(models: Promise<Models>): Promise<Models> {
  try {
    return await models;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    throw new DaemonStartError(`${error.message} Choose another with SERVICE_CACHE_DIR or --cache-dir.`, {
      cause: error,
    });
  }
}

function aliases(userFile: string | undefined): AliasTable {
  try {
    return readAliases(userFile);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new DaemonStartError(error.message, { cause: error });
  }
}

/** Peak memory in bytes. @throws ServiceError insufficient_memory if it exceeds the limits of an engine */
function memoryNeeded(
  gguf: GgufSummary,
  spec: EngineSpec,
  heapLimitBytes: number,
  limits: UserLimits,
): number {
  const estimate = estimateFor(gguf, spec);
  checkHeapLimit(estimate, heapLimitBytes);
  checkUserLimits(estimate, limits);
  return estimate.totalBytes;
}

function estimateFor(gguf: GgufSummary, spec: EngineSpec): MemoryEstimate {
  const onCpu = partOnCpu(gguf, spec);
  return estimateMemory({
    fileBytes: onCpu.fileBytes + auxiliaryBytes(spec),
    kvBytesPerToken: gguf.kvBytesPerToken * onCpu.kvShare,
    vocabSize: gguf.vocabSize,
    embeddingLength: gguf.embeddingLength,
    headCount: gguf.headCount,
    spec,
  });
}

/** Bytes of the projector, the draft model and the adapters. */
function auxiliaryBytes({ projectorFile, draft, adapters }: EngineSpec): number {
  const files = [projectorFile, draft?.path, ...adapters.map((adapter) => adapter.path)];
  return files.reduce((sum, file) => sum + (file === undefined ? 0 : statSync(file).size), 0);
}

/**
 * Loads the models of models.load, otherwise the default model if it is on disk. A failure is logged and reported as an
 * event; the daemon serves without the model. Never rejects.
 */
export async function loadFirstModels(services: ManagementServices): Promise<void> {
  const { config, models, draining } = services;
  const named = config.models.load ?? (models.defaultAlias === undefined ? [] : [models.defaultAlias]);
  for (const name of named) {
    if (draining.aborted) return;
    try {
      // Unlike get(), load() registers a path at its first use.
      await models.load({ alias: name }, draining);
    } catch (thrown) {
      if (draining.aborted) return;
      const error = ServiceError.from(thrown);
      if (error.code !== "model_already_loaded") report(services, name, error);
    }
  }
}

function report({ logger, events }: ManagementServices, name: string, error: ServiceError): void {
  const advice = error.code === "model_not_found" ? ` Download it with: daybreak pull ${name}` : "";
  logger.error(
    { model: name, code: error.code, err: error },
    `Cannot load ${name}: ${error.message}${advice}`,
  );
  reportFailure(events, name, error);
}
