import { pino } from "pino";
import { type Config, configSchema, type ConfigInput } from "../../src/config/schema.ts";
import { ServiceError } from "../../src/errors/service-error.ts";
import { ServiceEvents } from "../../src/events/service-events.ts";
import { Activity } from "../../src/daemon/activity/activity.ts";
import { createApis } from "../../src/daemon/create-apis.ts";
import { BrowserScripts, pageFile } from "../../src/daemon/package-files.ts";
import { createFileOpener } from "../../src/daemon/create-services.ts";
import type { ManagementServices } from "../../src/api/management/management-services.ts";
import { createApp, type App } from "../../src/http/app.ts";
import type { Inference } from "../../src/inference/inference.ts";
import type { Metrics } from "../../src/metrics/metrics.ts";
import type { Models } from "../../src/models/models.ts";
import { LocalBatches } from "../../src/batches/local-batches.ts";
import { FakeModels } from "./fake-models.ts";

const idleInference: Inference = {
  activeRequests: 0,
  loads: [],
  generate: async () => Promise.reject(new ServiceError("overloaded", "not in this test")),
  embed: async () => Promise.reject(new ServiceError("overloaded", "not in this test")),
  rerank: async () => Promise.reject(new ServiceError("overloaded", "not in this test")),
  score: async () => Promise.reject(new ServiceError("overloaded", "not in this test")),
  tokenize: async () => Promise.reject(new ServiceError("overloaded", "not in this test")),
  detokenize: async () => Promise.reject(new ServiceError("overloaded", "not in this test")),
  pieces: async () => Promise.reject(new ServiceError("overloaded", "not in this test")),
  promptFromTokens: async () => Promise.reject(new ServiceError("overloaded", "not in this test")),
};

const idleMetrics: Metrics = {
  totals: { requests: 3, tokensGenerated: 42, activeRequests: 0 },
  requestStarted: () => undefined,
  requestsWaiting: () => undefined,
  requestFinished: () => undefined,
  tokenGenerated: () => undefined,
  tokensGenerated: () => undefined,
  firstToken: () => undefined,
  tokenInterval: () => undefined,
  cachedTokens: () => undefined,
  draftTokens: () => undefined,
  promptTokens: () => undefined,
  answerMoved: () => undefined,
  render: async () => "# HELP service_info The daemon.\n",
};

export interface FakeOptions {
  readonly config?: ConfigInput;
  readonly models?: Models;
  readonly log?: (line: string) => void;
  readonly draining?: AbortSignal;
  readonly overrides?: Partial<ManagementServices & { batches: LocalBatches }>;
}

/** Services without a process or a file behind them, in the state ready. */
export function fakeServices(options: FakeOptions = {}): ManagementServices & { batches: LocalBatches } {
  const write = options.log ?? (() => undefined);
  const config = configSchema.parse({ socket: "", ...options.config });
  const { batches, ...overrides } = options.overrides ?? {};
  return {
    config,
    // Never started, so that it touches no disk.
    batches: batches ?? idleBatches(options.overrides?.config ?? config),
    models: options.models ?? new FakeModels(),
    hub: {
      url: "http://hub.test",
      search: async () => Promise.reject(new ServiceError("hub_unreachable", "not in this test")),
      offers: async () => Promise.reject(new ServiceError("hub_unreachable", "not in this test")),
    },
    inference: idleInference,
    metrics: idleMetrics,
    events: new ServiceEvents(),
    activity: new Activity(),
    logger: pino({ level: "debug" }, { write }),
    host: { where: "daemon", machine: "a machine of this test", engineSha256: "e".repeat(64) },
    version: "1.2.3",
    startedAt: performance.now() - 5000,
    life: { state: "ready" },
    draining: options.draining ?? new AbortController().signal,
    gpu: { available: false, adapter: undefined, problem: "none in this test", adapters: [] },
    kernels: "daybreak",
    sandbox: { state: { mode: "auto", wall: "none", parts: [], problem: "none in this test" } },
    endpoints: { http: "http://0.0.0.0:8080", ipc: "ipc:///run/daybreak.sock" },
    machineMemory: async () => ({ usedBytes: 1_000_000, totalBytes: 8_000_000 }),
    defaultModels: () => [],
    openFile: createFileOpener(),
    engineImage: async () => Promise.reject(new ServiceError("internal_error", "not in this test")),
    compatImage: async () => Promise.reject(new ServiceError("internal_error", "not in this test")),
    browserScripts: new BrowserScripts(),
    pageFile,
    shutdown: () => undefined,
    ...overrides,
  };
}

function idleBatches(config: Config): LocalBatches {
  return new LocalBatches({
    config,
    formats: {},
    events: new ServiceEvents(),
    logger: pino({ level: "silent" }),
    onLine: () => undefined,
  });
}

/** The complete HTTP side on given services, with all APIs of the daemon. */
export function appOf(services: ManagementServices): App {
  return createApp(services, createApis(services));
}

export function fakeApp(options: FakeOptions = {}): App {
  return appOf(fakeServices(options));
}
