// Parts of the package, because its unused process metrics would load 80 more modules at each start.
import Counter from "prom-client/lib/counter.js";
import Gauge from "prom-client/lib/gauge.js";
import Histogram from "prom-client/lib/histogram.js";
import Registry from "prom-client/lib/registry.js";
import type { Endpoint, Metrics } from "./metrics.ts";
import { createScrapedGauges, type ScrapedGauges } from "./scraped-gauges.ts";

/** Upper bounds in seconds; the client library adds +Inf. */
const DURATION_BUCKETS = [0.1, 0.5, 1, 5];
/** Up to the minutes that a long prompt takes on a slow processor; dense enough for a median. */
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

export interface MetricsOptions {
  readonly version: string;
  readonly uptimeSecs: () => number;
  readonly readGauges: () => Promise<ScrapedGauges>;
  /** True if the daemon is in a fleet, so that it has the fleet's metrics. */
  readonly isInFleet?: boolean;
}

/** Outcomes of a line of a batch. */
const LINE_OUTCOMES = ["succeeded", "errored"] as const;
type BatchLineOutcome = (typeof LINE_OUTCOMES)[number];

/** Counters of the daemon that are not of requests. */
interface DaemonMetrics {
  engineRestarted(): void;
  /** Counts an answer that was stopped because it repeated itself. */
  repetitionStopped(): void;
  /** Counts a finished line of a batch. */
  batchLine(outcome: BatchLineOutcome): void;
  /** Counts an engine that ended on the GPU. */
  gpuLost(): void;
  /** Counts a model that should use the GPU but runs on the CPU. */
  gpuAbandoned(): void;
}

/** Creates the registry of GET /metrics, with the specified names, types and labels. */
export function createMetrics(options: MetricsOptions): Metrics & DaemonMetrics {
  const registry = new Registry();
  const registers = [registry];
  const gauge = (name: string, help: string): Gauge => new Gauge({ name, help, registers });
  const counter = (name: string, help: string): Counter => new Counter({ name, help, registers });

  new Gauge({
    name: "service_info",
    help: "The daemon and its version.",
    labelNames: ["version"],
    registers,
  }).set({ version: options.version }, 1);
  const uptime = counter("service_uptime_seconds", "Seconds since the start.");
  const requestsTotal = new Counter({
    name: "service_requests_total",
    help: "Requests that were admitted.",
    labelNames: ["endpoint"],
    registers,
  });
  const requestsActive = gauge("service_requests_active", "Requests running or waiting for a slot.");
  const requestsWaiting = gauge("service_requests_waiting", "Requests waiting for a slot.");
  const tokensGenerated = counter("service_tokens_generated_total", "Tokens generated.");
  const promptTokens = counter("service_prompt_tokens_total", "Prompt tokens processed.");
  const cachedTokens = counter("service_cached_prompt_tokens_total", "Prompt tokens found in the KV cache.");
  const draftTokens = counter("service_draft_tokens_total", "Tokens guessed in advance.");
  const acceptedTokens = counter(
    "service_draft_tokens_accepted_total",
    "Tokens guessed in advance that the model generated too.",
  );
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

  const batchLines = new Counter({
    name: "service_batch_lines_total",
    help: "Requests of batches that have been answered.",
    labelNames: ["outcome"],
    registers,
  });

  const gpuLosses = counter("service_gpu_losses_total", "Engines that ended on the GPU.");
  const gpuAbandonments = counter(
    "service_gpu_abandonments_total",
    "Models loaded on the CPU because the GPU failed.",
  );

  const fleet = options.isInFleet
    ? {
        moved: counter("service_fleet_answers_moved_total", "Answers with which another machine went on."),
        movedOtherwise: counter(
          "service_fleet_answers_moved_otherwise_total",
          "Of these, those in which it would have said other tokens.",
        ),
      }
    : undefined;

  const setScraped = createScrapedGauges(registry, options.isInFleet ?? false);

  // A series that only appears with the first request would look like a reset to rate().
  for (const endpoint of ENDPOINTS) requestsTotal.inc({ endpoint }, 0);
  for (const outcome of LINE_OUTCOMES) batchLines.inc({ outcome }, 0);
  const speeds = new Map<string, number>();
  const totals = { requests: 0, tokensGenerated: 0, activeRequests: 0 };
  let reportedUptime = 0;
  // Tokens are counted in a variable, because a counter of the registry is slower.
  let reportedTokens = 0;

  const refresh = async (): Promise<void> => {
    const scraped = await options.readGauges();
    const loaded = new Set(scraped.models.map(({ model }) => model));
    for (const model of speeds.keys()) if (!loaded.has(model)) speeds.delete(model);
    const now = options.uptimeSecs();
    uptime.inc(now - reportedUptime);
    reportedUptime = now;
    requestsActive.set(totals.activeRequests);
    tokensGenerated.inc(totals.tokensGenerated - reportedTokens);
    reportedTokens = totals.tokensGenerated;
    setScraped(scraped, speeds);
  };

  return {
    totals,
    requestStarted(endpoint) {
      totals.requests += 1;
      totals.activeRequests += 1;
      requestsTotal.inc({ endpoint });
    },
    requestsWaiting: (change) => requestsWaiting.inc(change),
    requestFinished(_endpoint, seconds) {
      totals.activeRequests -= 1;
      duration.observe(seconds);
    },
    tokenGenerated() {
      totals.tokensGenerated += 1;
    },
    firstToken: (seconds) => firstToken.observe(seconds),
    tokensGenerated(model, tokens, rate) {
      totals.tokensGenerated += tokens;
      // A generation that took no time has no speed; Prometheus would accept NaN or Infinity.
      if (Number.isFinite(rate)) speeds.set(model, rate);
    },
    tokenInterval: (seconds) => tokenInterval.observe(seconds),
    cachedTokens: (tokens) => cachedTokens.inc(tokens),
    draftTokens(tokens, accepted) {
      draftTokens.inc(tokens);
      acceptedTokens.inc(accepted);
    },
    promptTokens: (tokens) => promptTokens.inc(tokens),
    answerMoved(isExact) {
      fleet?.moved.inc();
      if (!isExact) fleet?.movedOtherwise.inc();
    },
    engineRestarted: () => engineRestarts.inc(),
    batchLine: (outcome) => batchLines.inc({ outcome }),
    repetitionStopped: () => repetitions.inc(),
    gpuLost: () => gpuLosses.inc(),
    gpuAbandoned: () => gpuAbandonments.inc(),
    async render() {
      await refresh();
      return withDecimals(await registry.metrics());
    },
  };
}
