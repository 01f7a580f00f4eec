// Not the whole package, whose unused process metrics would load 80 more modules at each start.
import Counter from "prom-client/lib/counter.js";
import Gauge from "prom-client/lib/gauge.js";
import Histogram from "prom-client/lib/histogram.js";
import Registry from "prom-client/lib/registry.js";
import type { Endpoint, Metrics } from "./metrics.ts";

/** Upper bounds in seconds; the client library adds +Inf. */
const DURATION_BUCKETS = [0.1, 0.5, 1, 5];
/** Up to the minutes that a long prompt takes on a slow processor; close enough to tell a median. */
const FIRST_TOKEN_BUCKETS = [
  0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2, 3, 5, 7.5, 10, 15, 20, 30, 45, 60, 120, 300,
];
/** From a small model on a GPU to a large one that reads its weights from a disk. */
const INTERVAL_BUCKETS = [
  0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1, 2, 5, 10, 30, 60,
];
const ENDPOINTS: readonly Endpoint[] = ["chat", "generate", "embeddings"];

/** Writes bounds as 1.0 instead of 1, like Prometheus 3. */
function withDecimals(text: string): string {
  return text.replaceAll(/\{le="(\d+)"\}/g, '{le="$1.0"}');
}

/** A loaded model at the moment of a scrape. */
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

/** What the engine of a loaded model has to do. */
export interface ModelLoadGauges {
  readonly model: string;
  readonly running: number;
  readonly waiting: number;
  readonly contextTokens: number;
  /** From 0 to 1. */
  readonly contextUsage: number;
}

/** Values that are read at each scrape instead of being counted. */
export interface ScrapedGauges {
  readonly models: readonly LoadedModelGauges[];
  /** Batches that are not over; absent: none. */
  readonly batches?: number;
  /** Of the models that have been asked for something. */
  readonly loads: readonly ModelLoadGauges[];
  readonly memoryUsedBytes: number;
  /** Resident bytes of the daemon's own process. */
  readonly daemonMemoryBytes: number;
  /** Absent: the daemon is in no fleet. */
  readonly fleet?:
    | { readonly isConnected: boolean; readonly machines: readonly { readonly running: number }[] }
    | undefined;
  /** The adapter that models can use; undefined: none. */
  readonly gpu?: { readonly name: string; readonly vendor: string; readonly backend: string } | undefined;
}

export interface MetricsOptions {
  readonly version: string;
  readonly uptimeSecs: () => number;
  readonly scrape: () => Promise<ScrapedGauges>;
  /** Whether the daemon is in a fleet, and tells of it. */
  readonly isInFleet?: boolean;
}

/** What became of a line of a batch that was run. */
const LINE_OUTCOMES = ["succeeded", "errored"] as const;
type BatchLineOutcome = (typeof LINE_OUTCOMES)[number];

/** Metrics of the daemon other than those of requests. */
interface LifeMetrics {
  engineRestarted(): void;
  /** An answer was stopped because it ran in circles. */
  repetitionStopped(): void;
  /** A line of a batch is done. */
  batchLine(outcome: BatchLineOutcome): void;
  /** An engine has ended on the GPU. */
  gpuLost(): void;
  /** A model that was to use the GPU runs on the CPU. */
  gpuAbandoned(): void;
}

/** The registry of GET /metrics, with the specified names, types and labels. */
export function createMetrics(options: MetricsOptions): Metrics & LifeMetrics {
  const registry = new Registry();
  const registers = [registry];
  const gauge = (name: string, help: string): Gauge => new Gauge({ name, help, registers });
  const modelGauge = (name: string, help: string): Gauge<"model"> =>
    new Gauge({ name, help, labelNames: ["model"], registers });
  const counter = (name: string, help: string): Counter => new Counter({ name, help, registers });

  new Gauge({
    name: "service_info",
    help: "The daemon and its version.",
    labelNames: ["version"],
    registers,
  }).set({ version: options.version }, 1);
  const uptime = counter("service_uptime_seconds", "Seconds since the start.");
  const modelsLoaded = gauge("service_models_loaded", "Models in memory.");
  const requestsTotal = new Counter({
    name: "service_requests_total",
    help: "Requests that were admitted.",
    labelNames: ["endpoint"],
    registers,
  });
  const requestsActive = gauge("service_requests_active", "Requests running or waiting for a slot.");
  const requestsWaiting = gauge("service_requests_waiting", "Requests waiting for a slot.");
  const requestsRunning = gauge("service_requests_running", "Requests that have a slot.");
  const cacheUsage = gauge(
    "service_kv_cache_usage_ratio",
    "Part of the KV caches, from 0 to 1, that running requests hold.",
  );
  const tokensGenerated = counter("service_tokens_generated_total", "Tokens generated.");
  const tokensPerSecond = modelGauge("service_tokens_per_second", "Speed of the model's last generation.");
  const promptTokens = counter("service_prompt_tokens_total", "Prompt tokens processed.");
  const cachedTokens = counter("service_cached_prompt_tokens_total", "Prompt tokens found in the KV cache.");
  const guessed = counter("service_draft_tokens_total", "Tokens guessed in advance.");
  const guessesKept = counter(
    "service_draft_tokens_accepted_total",
    "Tokens guessed in advance that the model generated too.",
  );
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
  const duration = new Histogram({
    name: "service_request_duration_seconds",
    help: "Seconds from admission to the end of a request.",
    buckets: DURATION_BUCKETS,
    registers,
  });
  const firstToken = new Histogram({
    name: "service_time_to_first_token_seconds",
    help: "Seconds from the arrival of a request to the first token of its answer.",
    buckets: FIRST_TOKEN_BUCKETS,
    registers,
  });
  const tokenInterval = new Histogram({
    name: "service_time_per_output_token_seconds",
    help: "Mean seconds between the tokens of an answer, after the first one.",
    buckets: INTERVAL_BUCKETS,
    registers,
  });
  const engineRestarts = counter("service_engine_restarts_total", "Engines started again after a crash.");
  const repetitions = counter(
    "service_repetitions_stopped_total",
    "Answers stopped because they ran in circles.",
  );

  const batchesRunning = gauge(
    "service_batches_running",
    "Batches that are not over; of a fleet's, those that this machine leads.",
  );
  const batchLines = new Counter({
    name: "service_batch_lines_total",
    help: "Requests of batches that have been answered.",
    labelNames: ["outcome"],
    registers,
  });

  const gpuAvailable = gauge("service_gpu_available", "1 when models can use a GPU.");
  const gpuInfo = new Gauge({
    name: "service_gpu_info",
    help: "The GPU that models can use.",
    labelNames: ["name", "vendor", "backend"],
    registers,
  });
  const gpuLosses = counter("service_gpu_losses_total", "Engines that ended on the GPU.");
  const gpuAbandonments = counter(
    "service_gpu_abandonments_total",
    "Models loaded on the CPU because the GPU failed.",
  );

  const fleet = options.isInFleet
    ? {
        connected: gauge("service_fleet_connected", "1 when the fleet's NATS server is reachable."),
        machines: gauge("service_fleet_machines", "Machines of the fleet, with this one."),
        running: gauge("service_fleet_requests_running", "Requests that have a slot on any machine."),
        moved: counter("service_fleet_answers_moved_total", "Answers with which another machine went on."),
        movedOtherwise: counter(
          "service_fleet_answers_moved_otherwise_total",
          "Of these, those in which it would have said other tokens.",
        ),
      }
    : undefined;

  // A series that only appears with the first request would look like a reset to rate().
  for (const endpoint of ENDPOINTS) requestsTotal.inc({ endpoint }, 0);
  for (const outcome of LINE_OUTCOMES) batchLines.inc({ outcome }, 0);
  const speeds = new Map<string, number>();
  const totals = { requests: 0, tokensGenerated: 0, activeRequests: 0 };
  let reportedUptime = 0;
  // Tokens are only added up one by one: the registry would take longer.
  let reportedTokens = 0;

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
  const refresh = async (): Promise<void> => {
    const scraped = await options.scrape();
    const now = options.uptimeSecs();
    uptime.inc(now - reportedUptime);
    reportedUptime = now;
    modelsLoaded.set(scraped.models.length);
    batchesRunning.set(scraped.batches ?? 0);
    requestsActive.set(totals.activeRequests);
    tokensGenerated.inc(totals.tokensGenerated - reportedTokens);
    reportedTokens = totals.tokensGenerated;
    memoryUsed.set(scraped.memoryUsedBytes);
    daemonMemory.set(scraped.daemonMemoryBytes);
    gpuAvailable.set(scraped.gpu ? 1 : 0);
    gpuInfo.reset();
    if (scraped.gpu) gpuInfo.set({ ...scraped.gpu }, 1);
    fleet?.connected.set(scraped.fleet?.isConnected ? 1 : 0);
    fleet?.machines.set(scraped.fleet?.machines.length ?? 0);
    fleet?.running.set(scraped.fleet?.machines.reduce((sum, { running }) => sum + running, 0) ?? 0);
    for (const each of perModel) each.reset();
    const loaded = new Set(scraped.models.map(({ model }) => model));
    for (const model of speeds.keys()) if (!loaded.has(model)) speeds.delete(model);
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

  return {
    totals,
    requestStarted(endpoint) {
      totals.requests += 1;
      totals.activeRequests += 1;
      requestsTotal.inc({ endpoint });
    },
    requestsWaiting(change) {
      requestsWaiting.inc(change);
    },
    requestFinished(_endpoint, seconds) {
      totals.activeRequests -= 1;
      duration.observe(seconds);
    },
    tokenGenerated() {
      totals.tokensGenerated += 1;
    },
    firstToken(seconds) {
      firstToken.observe(seconds);
    },
    tokensGenerated(model, tokens, rate) {
      totals.tokensGenerated += tokens;
      // A generation that took no time has no speed; Prometheus would accept NaN or Infinity.
      if (Number.isFinite(rate)) speeds.set(model, rate);
    },
    tokenInterval(seconds) {
      tokenInterval.observe(seconds);
    },
    cachedTokens(tokens) {
      cachedTokens.inc(tokens);
    },
    guessedTokens(tokens, kept) {
      guessed.inc(tokens);
      guessesKept.inc(kept);
    },
    promptTokens(tokens) {
      promptTokens.inc(tokens);
    },
    answerMoved(isExact) {
      fleet?.moved.inc();
      if (!isExact) fleet?.movedOtherwise.inc();
    },
    engineRestarted() {
      engineRestarts.inc();
    },
    batchLine(outcome) {
      batchLines.inc({ outcome });
    },
    repetitionStopped() {
      repetitions.inc();
    },
    gpuLost() {
      gpuLosses.inc();
    },
    gpuAbandoned() {
      gpuAbandonments.inc();
    },
    async render() {
      await refresh();
      return withDecimals(await registry.metrics());
    },
  };
}

/** Of all KV caches together. */
function totalUsage(loads: readonly ModelLoadGauges[]): number {
  const tokens = loads.reduce((sum, { contextTokens }) => sum + contextTokens, 0);
  const held = loads.reduce((sum, { contextTokens, contextUsage }) => sum + contextTokens * contextUsage, 0);
  return tokens > 0 ? held / tokens : 0;
}
