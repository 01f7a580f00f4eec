import { configSchema, type ConfigInput } from "../../src/config/schema.ts";
import type { GenerationEvent, GenerationRequest } from "../../src/engine/protocol/generation.ts";
import type { App } from "../../src/http/app.ts";
import { createInference } from "../../src/inference/create-inference.ts";
import type { CompileOffThread } from "../../src/inference/schema-compiler.ts";
import type { Model } from "../../src/models/model.ts";
import { fakeApp } from "./fake-services.ts";
import { FakeEngine } from "./fake-engine.ts";
import { FakeMetrics } from "./fake-metrics.ts";
import { fakeModel, FakeModels } from "./fake-models.ts";

export interface TestApp {
  readonly app: App;
  readonly engine: FakeEngine;
  readonly models: FakeModels;
  readonly metrics: FakeMetrics;
  /** Sends a JSON body; the answer's body as it came. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>;
  /** Last request of the engine. */
  lastRequest(): GenerationRequest;
}

/** A model that can do everything. */
export const ABLE = fakeModel({
  capabilities: { vision: true, audio: true, tools: true, thinking: true, json: true },
});

/** The whole HTTP side on a scripted engine, without a socket. */
export function testApp(
  options: {
    events?: readonly GenerationEvent[];
    model?: Model;
    slots?: number;
    config?: ConfigInput;
    compileOffThread?: CompileOffThread;
  } = {},
): TestApp {
  const engine = new FakeEngine({ slots: options.slots ?? 4 });
  const { events } = options;
  if (events) {
    engine.script = async function* () {
      yield* events;
    };
  }
  const models = new FakeModels([options.model ?? ABLE], engine);
  const metrics = new FakeMetrics();
  const config = configSchema.parse(options.config ?? {});
  const { compileOffThread } = options;
  const inference = createInference({
    models,
    metrics,
    config,
    ...(compileOffThread && { compileOffThread }),
  });
  const overrides = { config, inference, metrics };
  const app = fakeApp({ models, overrides });
  return {
    app,
    engine,
    models,
    metrics,
    async post(path, body, headers = {}) {
      return app.request(path, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: typeof body === "string" ? body : JSON.stringify(body),
      });
    },
    lastRequest() {
      const request = engine.requests.at(-1);
      if (!request) throw new Error("the engine was asked nothing");
      return request;
    },
  };
}

/** A fetch for the official clients that ends in the app. */
export function fetchOf({ app }: TestApp): typeof fetch {
  return async (input, init) => app.request(input instanceof URL ? input.href : input, init);
}

/** The lines of an NDJSON body. */
export async function lines(response: Response): Promise<unknown[]> {
  const text = await response.text();
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line): unknown => JSON.parse(line));
}

interface SseEvent {
  event: string | undefined;
  data: string;
}

/** The events of a server-sent stream; comments are left out. */
export async function sseEvents(response: Response): Promise<SseEvent[]> {
  const text = await response.text();
  return text
    .split("\n\n")
    .map((block) => {
      const fields = block.split("\n");
      const field = (name: string) =>
        fields.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      return { event: field("event"), data: field("data") };
    })
    .filter((event): event is SseEvent => event.data !== undefined);
}
