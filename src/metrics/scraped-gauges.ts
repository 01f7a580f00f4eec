import Gauge from "prom-client/lib/gauge.js";
import type Registry from "prom-client/lib/registry.js";

/** Values of a loaded model at a scrape. */
export interface LoadedModelGauges {
  readonly model: string;
  readonly parameters: number;
  readonly contextSize: number;
  readonly gpuLayers: number;
  /** Resident bytes of its engine. */
  readonly memoryBytes: number;
  /** Bytes of the GPU's memory reserved for it. */
  readonly gpuMemoryBytes: number;
}

/** Requests and KV cache of a loaded model's engine. */
interface ModelActivityGauges {
  readonly model: string;
  readonly running: number;
  readonly waiting: number;
  readonly contextTokens: number;
  /** From 0 to 1. */
  readonly contextUsage: number;
}

/** Values that are read at each scrape. */
export interface ScrapedGauges {
  readonly models: readonly LoadedModelGauges[];
  /** Unfinished batches; absent: none. */
  readonly batches?: number;
  /** Activity of the models that have had a request. */
  readonly loads: readonly ModelActivityGauges[];
  readonly memoryUsedBytes: number;
  /** Resident bytes of the daemon's own process. */
  readonly daemonMemoryBytes: number;
  /** Absent: the daemon is in no fleet. */
  readonly fleet?:
    | { readonly connected: boolean; readonly machines: readonly { readonly running: number }[] }
    | undefined;
  /** The adapter that models can use; undefined: none. */
  readonly gpu?: { readonly name: string; readonly vendor: string; readonly backend: string } | undefined;
}

/**
 * Registers the gauges that are read at each scrape.
 * @returns function that sets them; `speeds`: tokens per second of each model's last generation
 */
export function createScrapedGauges(
  registry: Registry,
  isInFleet: boolean,
): (scraped: ScrapedGauges, speeds: ReadonlyMap<string, number>) => void {
  const registers = [registry];
  const gauge = (name: string, help: string): Gauge => new Gauge({ name, help, registers });
  const modelGauge = (name: string, help: string): Gauge<"model"> =>
    new Gauge({ name, help, labelNames: ["model"], registers });

  const modelsLoaded = gauge("service_models_loaded", "Models in memory.");
  const requestsRunning = gauge("service_requests_running", "Requests that have a slot.");
  const cacheUsage = gauge(
    "service_kv_cache_usage_ratio",
    "Part of the KV caches, from 0 to 1, that running requests hold.",
  );
  const tokensPerSecond = modelGauge("service_tokens_per_second", "Speed of the model's last generation.");
  const parameters = modelGauge("service_model_parameters", "Weights of a loaded model.");
  const contextSize = modelGauge("service_model_context_size", "Context of a loaded model in tokens.");
  const gpuLayers = modelGauge("service_model_gpu_layers", "Layers of a loaded model on the GPU.");
  const modelRunning = modelGauge(
    "service_model_requests_running",
    "Requests that have a slot of the model.",
  );
  const modelWaiting = modelGauge(
    "service_model_requests_waiting",
    "Requests waiting for a slot of the model.",
  );
  const modelCacheUsage = modelGauge(
    "service_model_kv_cache_usage_ratio",
    "Part of the model's KV cache, from 0 to 1, that running requests hold.",
  );
  const modelMemory = modelGauge("service_model_memory_bytes", "Resident memory of a loaded model's engine.");
  const modelGpuMemory = modelGauge(
    "service_model_gpu_memory_bytes",
    "Memory of the GPU reserved for a loaded model.",
  );
  const daemonMemory = gauge("service_daemon_memory_bytes", "Resident memory of the daemon's own process.");
  const memoryUsed = gauge("service_memory_used_bytes", "Resident memory of the daemon and its engines.");
  const batchesRunning = gauge(
    "service_batches_running",
    "Batches that are not over; of a fleet's, those that this machine leads.",
  );
  const gpuAvailable = gauge("service_gpu_available", "1 when models can use a GPU.");
  const gpuInfo = new Gauge({
    name: "service_gpu_info",
    help: "The GPU that models can use.",
    labelNames: ["name", "vendor", "backend"],
    registers,
  });
  const fleet = isInFleet
    ? {
        connected: gauge("service_fleet_connected", "1 when the fleet's NATS server is reachable."),
        machines: gauge("service_fleet_machines", "Machines of the fleet, with this one."),
        running: gauge("service_fleet_requests_running", "Requests that have a slot on any machine."),
      }
    : undefined;

  const perModel = [
    tokensPerSecond,
    parameters,
    contextSize,
    gpuLayers,
    modelMemory,
    modelGpuMemory,
    modelRunning,
    modelWaiting,
    modelCacheUsage,
  ];

  return (scraped, speeds) => {
    modelsLoaded.set(scraped.models.length);
    batchesRunning.set(scraped.batches ?? 0);
    memoryUsed.set(scraped.memoryUsedBytes);
    daemonMemory.set(scraped.daemonMemoryBytes);
    gpuAvailable.set(scraped.gpu ? 1 : 0);
    gpuInfo.reset();
    if (scraped.gpu) gpuInfo.set({ ...scraped.gpu }, 1);
    fleet?.connected.set(scraped.fleet?.connected ? 1 : 0);
    fleet?.machines.set(scraped.fleet?.machines.length ?? 0);
    fleet?.running.set(scraped.fleet?.machines.reduce((sum, { running }) => sum + running, 0) ?? 0);
    for (const each of perModel) each.reset();
    const loads = new Map(scraped.loads.map((load) => [load.model, load]));
    requestsRunning.set(scraped.loads.reduce((sum, { running }) => sum + running, 0));
    cacheUsage.set(totalUsage(scraped.loads));
    for (const each of scraped.models) {
      const { model } = each;
      const load = loads.get(model);
      modelRunning.set({ model }, load?.running ?? 0);
      modelWaiting.set({ model }, load?.waiting ?? 0);
      modelCacheUsage.set({ model }, load?.contextUsage ?? 0);
      parameters.set({ model }, each.parameters);
      contextSize.set({ model }, each.contextSize);
      gpuLayers.set({ model }, each.gpuLayers);
      modelMemory.set({ model }, each.memoryBytes);
      modelGpuMemory.set({ model }, each.gpuMemoryBytes);
      tokensPerSecond.set({ model }, speeds.get(model) ?? 0);
    }
  };
}

/** Usage of all KV caches together, from 0 to 1. */
function totalUsage(loads: readonly ModelActivityGauges[]): number {
  const tokens = loads.reduce((sum, { contextTokens }) => sum + contextTokens, 0);
  const usedTokens = loads.reduce(
    (sum, { contextTokens, contextUsage }) => sum + contextTokens * contextUsage,
    0,
  );
  return tokens > 0 ? usedTokens / tokens : 0;
}
