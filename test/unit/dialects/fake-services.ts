import { pino } from "pino";
import { configSchema, type ConfigInput } from "../../../src/config/schema.ts";
import { ServiceError } from "../../../src/errors/service-error.ts";
import { ServiceEvents } from "../../../src/events/service-events.ts";
import { createDialects } from "../../../src/daemon/dialects.ts";
import { pageFile } from "../../../src/daemon/page-file.ts";
import type { ManagementServices } from "../../../src/dialects/management/management-services.ts";
import { createApp, type App } from "../../../src/http/app.ts";
import type { Inference } from "../../../src/inference/inference.ts";
import type { Metrics } from "../../../src/metrics/metrics.ts";
import type { DeletedModel, Download, LoadOptions, Model, Models } from "../../../src/models/model.ts";

export function fakeModel(overrides: Partial<Model> = {}): Model {
  return {
    alias: "mini",
    source: { kind: "shipped", base: undefined },
    state: "loaded",
    path: "/models/mini.gguf",
    files: ["/models/mini.gguf"],
    projector: undefined,
    adapters: [],
    gguf: {
      architecture: "llama",
      name: "Mini",
      parameters: 1_000_000,
      vocabSize: 512,
      contextLength: 2048,
      embeddingLength: 64,
      headCount: 4,
      blockCount: 4,
      quantization: "Q8_0",
      fileSize: 1_100_000,
      chatTemplate: undefined,
      infill: undefined,
      callTokens: [],
      kvBytesPerToken: 128,
      weightBytes: { blocks: 1, largestInBlocks: 1, embedding: 0, output: 0 },
      purpose: "generate",
      auxiliary: undefined,
    },
    capabilities: { vision: false, tools: true, thinking: false, json: true },
    settings: {
      system: undefined,
      template: undefined,
      sampling: {},
      maxTokens: undefined,
      stop: [],
      contextSize: undefined,
      gpuLayers: undefined,
      flashAttention: undefined,
      thinking: undefined,
      toolFormat: undefined,
      capabilities: {},
    },
    contextSize: 2048,
    gpuLayers: 0,
    isDefault: true,
    activeRequests: 0,
    modifiedAt: Date.UTC(2026, 0, 2),
    memoryBytes: 50_000_000,
    expiresAt: undefined,
    ...overrides,
  };
}

/** Models in a list, with the rules on states that the real ones keep. */
export class FakeModels implements Models {
  readonly known: Map<string, Model>;
  readonly loads: LoadOptions[] = [];
  defaultAlias: string | undefined;
  readonly downloads: Download[] = [];

  constructor(models: readonly Model[] = [fakeModel()]) {
    this.known = new Map(models.map((model) => [model.alias, model]));
    this.defaultAlias = models.find((model) => model.isDefault)?.alias;
  }

  async list(): Promise<readonly Model[]> {
    return [...this.known.values()];
  }

  async get(name: string): Promise<Model> {
    const model = this.known.get(name);
    if (!model) throw new ServiceError("model_not_found", `No model "${name}" is known.`);
    return model;
  }

  async setDefault(alias: string): Promise<void> {
    this.defaultAlias = alias;
  }

  async acquire(): Promise<never> {
    throw new ServiceError("model_not_loaded", "not in this test");
  }

  async load(options: LoadOptions): Promise<Model> {
    this.loads.push(options);
    const model = await this.get(options.alias);
    if (model.state === "loaded") throw new ServiceError("model_already_loaded", "It is loaded already.");
    const contextSize = options.contextSize ?? model.contextSize;
    return this.#put({ ...model, state: "loaded", contextSize });
  }

  async unload(name: string): Promise<void> {
    const model = await this.get(name);
    if (model.state !== "loaded") throw new ServiceError("model_already_unloaded", "It is not loaded.");
    this.#put({ ...model, state: "available" });
  }

  async delete(name: string): Promise<DeletedModel> {
    const { alias, source } = await this.get(name);
    this.known.delete(name);
    return { alias, source: source.kind };
  }

  pull: Models["pull"] = async (name) => {
    this.#put(fakeModel({ alias: name, state: "available" }));
    return { alias: name, repo: "owner/repo", sizeBytes: 100 };
  };

  async create(alias: string): Promise<Model> {
    return this.#put(fakeModel({ alias, source: { kind: "modelfile", base: "mini" } }));
  }

  async copy(source: string, target: string): Promise<Model> {
    return this.#put({ ...(await this.get(source)), alias: target });
  }

  async modelfile(): Promise<string> {
    return "FROM /models/mini.gguf\n";
  }

  async close(): Promise<void> {}

  #put(model: Model): Model {
    this.known.set(model.alias, model);
    return model;
  }
}

const idleInference: Inference = {
  activeRequests: 0,
  generate: async () => Promise.reject(new ServiceError("overloaded", "not in this test")),
  embed: async () => Promise.reject(new ServiceError("overloaded", "not in this test")),
  rerank: async () => Promise.reject(new ServiceError("overloaded", "not in this test")),
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
  tokensGenerated: () => undefined,
  promptTokens: () => undefined,
  render: async () => "# HELP service_info The daemon.\n",
};

export interface FakeOptions {
  readonly config?: ConfigInput;
  readonly models?: Models;
  readonly log?: (line: string) => void;
  readonly draining?: AbortSignal;
  readonly overrides?: Partial<ManagementServices>;
}

/** Services without a process or a file behind them, in the state ready. */
export function fakeServices(options: FakeOptions = {}): ManagementServices {
  const write = options.log ?? (() => undefined);
  return {
    config: configSchema.parse({ socket: "", ...options.config }),
    models: options.models ?? new FakeModels(),
    inference: idleInference,
    metrics: idleMetrics,
    events: new ServiceEvents(),
    logger: pino({ level: "debug" }, { write }),
    version: "1.2.3",
    startedAt: performance.now() - 5000,
    life: { state: "ready" },
    draining: options.draining ?? new AbortController().signal,
    gpu: { available: false, adapter: undefined, problem: "none in this test", adapters: [] },
    kernels: "daybreak",
    wall: { state: { mode: "auto", wall: "none", parts: [], problem: "none in this test" } },
    endpoints: { http: "http://0.0.0.0:8080", ipc: "ipc:///run/daybreak.sock" },
    machineMemory: async () => ({ usedBytes: 1_000_000, totalBytes: 8_000_000 }),
    defaultModels: () => [],
    pageFile,
    shutdown: () => undefined,
    ...options.overrides,
  };
}

/** The whole HTTP side on services, with the dialects that the daemon has. */
export function appOf(services: ManagementServices): App {
  return createApp(services, createDialects(services));
}

export function fakeApp(options: FakeOptions = {}): App {
  return appOf(fakeServices(options));
}
