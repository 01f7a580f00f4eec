import { mkdtempSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { pino } from "pino";
import { LocalBatches } from "../../src/batches/local-batches.ts";
import { configSchema, type ConfigInput } from "../../src/config/schema.ts";
import { batchLineRunner, isBatchWork } from "../../src/daemon/run-batch-line.ts";
import { BATCH_FORMATS } from "../../src/daemon/create-apis.ts";
import type { GenerationEvent } from "../../src/engine/protocol/generation.ts";
import { ServiceEvents } from "../../src/events/service-events.ts";
import type { App } from "../../src/http/app.ts";
import { createInference } from "../../src/inference/create-inference.ts";
import { FakeEngine } from "./fake-engine.ts";
import { FakeMetrics } from "./fake-metrics.ts";
import { FakeModels } from "./fake-models.ts";
import { fakeApp } from "./fake-services.ts";
import { ABLE } from "./test-app.ts";

export interface BatchApp extends AsyncDisposable {
  readonly app: App;
  readonly engine: FakeEngine;
  readonly events: ServiceEvents;
  /** The folder of the cache. */
  readonly folder: string;
  /** A fetch for the official clients that ends in the app. */
  readonly fetch: typeof fetch;
}

/** The whole HTTP side on a scripted engine, with batches in a folder of their own. */
export async function batchApp(
  options: {
    readonly answer?: readonly GenerationEvent[];
    readonly config?: ConfigInput;
    readonly folder?: string;
    readonly now?: () => number;
  } = {},
): Promise<BatchApp> {
  const folder = options.folder ?? mkdtempSync(path.join(os.tmpdir(), "daybreak-batches-"));
  const config = configSchema.parse({ cache_dir: folder, ...options.config });
  const engine = new FakeEngine({ slots: config.models.slots });
  const { answer } = options;
  if (answer) {
    engine.script = async function* () {
      yield* answer;
    };
  }
  const events = new ServiceEvents();
  const models = new FakeModels([ABLE], engine);
  const metrics = new FakeMetrics();
  const inference = createInference({ models, metrics, config, isLowPriority: isBatchWork });
  const batches = new LocalBatches({
    config,
    formats: BATCH_FORMATS,
    events,
    logger: pino({ level: "silent" }),
    onLine: () => undefined,
    ...(options.now && { now: options.now }),
  });
  const app = fakeApp({ models, overrides: { config, inference, metrics, events, batches } });
  await batches.start(batchLineRunner(app));
  return {
    app,
    engine,
    events,
    folder,
    fetch: async (input, init) => app.request(input instanceof URL ? input.href : input, init),
    [Symbol.asyncDispose]: async () => await batches.close(),
  };
}
