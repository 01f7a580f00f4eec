import type { Logger } from "pino";
import type { Config } from "../config/schema.ts";
import { ServiceEvents } from "../events/service-events.ts";
import type { Services } from "../http/services.ts";
import { machineMemory } from "../http/system/machine-memory.ts";
import { createInference } from "../inference/create-inference.ts";
import { createMetrics, type ScrapedGauges } from "../metrics/create-metrics.ts";
import type { Models } from "../models/model.ts";
import { createModels } from "./create-models.ts";
import { packageVersion } from "./package-version.ts";

export interface DaemonContext {
  readonly logger: Logger;
  /** Aborted when draining begins. */
  readonly draining: AbortSignal;
  /** Begins to drain and end; returns at once. */
  readonly shutdown: () => void;
}

/** Wires the layers together, from the bottom up. Nothing listens yet and nothing is loaded. */
export async function createServices(
  config: Config,
  { logger, draining, shutdown }: DaemonContext,
): Promise<Services> {
  const startedAt = performance.now();
  const version = packageVersion();
  const events = new ServiceEvents();
  const models = await createModels(config, events, logger);
  const metrics = createMetrics({
    version,
    uptimeSecs: () => (performance.now() - startedAt) / 1000,
    scrape: () => scrape(models),
  });
  const inference = createInference({ models, metrics, config });
  events.subscribe((event) => {
    if (event.type === "engine-restarted") metrics.engineRestarted();
    const { time: _time, type, ...fields } = event;
    logger.info(fields, type);
  });
  return {
    config,
    models,
    inference,
    metrics,
    events,
    logger,
    version,
    startedAt,
    life: { state: "starting" },
    draining,
    shutdown,
    // Engines run on the CPU alone as yet.
    gpu: { available: false },
    endpoints: { http: "", ipc: "" },
  };
}

async function scrape(models: Models): Promise<ScrapedGauges> {
  const list = await models.list();
  return {
    memoryUsedBytes: machineMemory(list).usedBytes,
    models: list
      .filter((model) => model.state === "loaded")
      .map((model) => ({
        model: model.alias,
        parameters: model.gguf.parameters,
        contextSize: model.contextSize,
        gpuLayers: model.gpuLayers,
      })),
  };
}
