import { Hono } from "hono";
import pino from "pino";
import { z } from "zod";
import { anthropicDialect } from "../dialects/anthropic/anthropic-dialect.ts";
import { nativeDialect } from "../dialects/native/native-dialect.ts";
import { openaiDialect } from "../dialects/openai/openai-dialect.ts";
import type { Services } from "../dialects/services.ts";
import { PAGE_BUILD } from "../engine/browser/compat-build.ts";
import { addRoutes } from "../http/add-routes.ts";
import type { AppEnv } from "../http/app-env.ts";
import type { Dialect } from "../http/dialect.ts";
import { requestId } from "../http/middleware/request-id.ts";
import { createInference } from "../inference/create-inference.ts";
import { NoMetrics } from "../metrics/no-metrics.ts";
import type { TabModels } from "./tab-models.ts";

/** Largest body of a request, in bytes; as in the daemon's configuration. */
const BODY_LIMIT = 100 * 1024 * 1024;
/** Requests that may wait for a slot. */
const QUEUE_SIZE = 100;

const logEntrySchema = z.looseObject({
  msg: z.string().optional(),
  err: z.looseObject({ message: z.string() }).optional(),
});

/** The daemon's APIs for generation, served by the engine of a page. */
export function createTabApp(models: TabModels, slots: number): Hono<AppEnv> {
  const config = {
    models: { slots, queue_size: QUEUE_SIZE, repetition_guard: false },
    engine: { request_timeout: Number.POSITIVE_INFINITY },
  };
  const logger = pino({ level: "warn", browser: { write: (entry) => console.error(lineOf(entry)) } });
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
  const native = nativeDialect(services);
  // Covers the paths that no other dialect does.
  const dialects: Dialect[] = [
    { ...native, prefixes: ["/"] },
    openaiDialect(services),
    anthropicDialect(services),
  ];
  addRoutes(app, dialects, life);
  return app;
}

/** One readable line: consoles show objects of workers only to who looks inside. */
function lineOf(entry: object): string {
  const { msg, err } = logEntrySchema.parse(entry);
  return `Daybreak: ${[msg, err?.message].filter(Boolean).join(": ")}`;
}
