import "./older-browsers.ts";
import { Hono } from "hono";
import pino from "pino";
import { z } from "zod";
import { anthropicApi } from "../api/anthropic/anthropic-api.ts";
import { nativeApi } from "../api/native/native-api.ts";
import { openaiApi } from "../api/openai/openai-api.ts";
import type { Services } from "../api/services.ts";
import { PAGE_BUILD } from "../engine/browser/compat-build.ts";
import { ServiceError, toError } from "../errors/service-error.ts";
import { addRoutes } from "../http/add-routes.ts";
import type { AppEnv } from "../http/app-env.ts";
import { requestId } from "../http/middleware/request-log.ts";
import type { Api } from "../http/route.ts";
import { createInference } from "../inference/create-inference.ts";
import { NoMetrics } from "../metrics/metrics.ts";
import { NO_SETTINGS } from "../models/model.ts";
import { parseInstructions } from "../models/modelfile/parse-instructions.ts";
import { readSettings } from "../models/modelfile/read-settings.ts";
import { FetchServer } from "./fetch-channel.ts";
import { readTabModel } from "./tab-model.ts";
import { TabModels } from "./tab-models.ts";
import type { AnswerMessage, FetchMessage, StartMessage, WorkerMessage } from "./worker-messages.ts";

/** Worker script of an engine in a page. It serves the daemon's APIs, and runs llama.cpp in further workers. */

/** Maximum time without progress while loading, which includes compiling the WebAssembly. */
const LOAD_TIMEOUT_MS = 120_000;
const STALL_TIMEOUT_MS = 120_000;

let server: FetchServer | undefined;

function send(message: WorkerMessage | AnswerMessage): void {
  postMessage(message);
}

async function start({ alias, files, modelfile, wasmUrl, compat, options }: StartMessage): Promise<void> {
  try {
    const settings = modelfile === undefined ? NO_SETTINGS : readSettings(parseInstructions(modelfile));
    const build = PAGE_BUILD.isCompat ? compat : { wasmUrl };
    const model = await readTabModel(alias, files, settings, options);
    const models = new TabModels(model, {
      ...build,
      loadTimeoutMs: LOAD_TIMEOUT_MS,
      stallTimeoutMs: STALL_TIMEOUT_MS,
      log: (level, line) => {
        if (level === "error") console.error(line);
      },
      onProgress: (progress) => send({ type: "progress", progress }),
    });
    const { info } = await models.start();
    const app = createTabApp(models, model.spec.slots);
    server = new FetchServer((request, env) => app.fetch(request, env), send);
    send({ type: "ready", alias, info, gpu: models.gpu });
  } catch (error) {
    const { code, message } = ServiceError.from(toError(error));
    send({ type: "refused", code, message });
  }
}

/** Maximum size of a request body, in bytes: the daemon's default. */
const BODY_LIMIT = 100 * 1024 * 1024;
/** Maximum number of requests that wait for a slot. */
const QUEUE_SIZE = 100;

const logEntrySchema = z.looseObject({
  msg: z.string().optional(),
  err: z.looseObject({ message: z.string() }).optional(),
});

globalThis.addEventListener("message", ({ data }: MessageEvent<StartMessage | FetchMessage>) => {
  if (data.type === "start") void start(data);
  else server?.receive(data);
});

/** Creates the app that serves the daemon's APIs for generation. */
function createTabApp(models: TabModels, slots: number): Hono<AppEnv> {
  const config = {
    models: { slots, queue_size: QUEUE_SIZE, repetition_guard: false },
    engine: { request_timeout: Number.POSITIVE_INFINITY },
  };
  const logger = pino({ level: "warn", browser: { write: (entry) => console.error(logLine(entry)) } });
  const life = { state: "ready" } as const;
  const services: Services = {
    config,
    models,
    inference: createInference({ models, metrics: new NoMetrics(), config }),
    logger,
    host: {
      where: "browser",
      machine: navigator.userAgent,
      engineSha256: PAGE_BUILD.sha256,
    },
    version: "",
    life,
    draining: new AbortController().signal,
  };
  const app = new Hono<AppEnv>();
  app.use(requestId(logger, BODY_LIMIT));
  const native = nativeApi(services);
  // The native API handles all paths that the others do not.
  const apis: Api[] = [{ ...native, prefixes: ["/"] }, openaiApi(services), anthropicApi(services)];
  addRoutes(app, apis, life);
  return app;
}

/** Formats a log record as text, since consoles show objects of workers collapsed. */
function logLine(entry: object): string {
  const { msg, err } = logEntrySchema.parse(entry);
  return `Daybreak: ${[msg, err?.message].filter(Boolean).join(": ")}`;
}
