import { ServiceError } from "../../src/errors/service-error.ts";
import type { ImportRequest, ImportStep } from "../../src/models/import/imported-files.ts";
import type { Model } from "../../src/models/model.ts";
import type { DeletedModel, LoadOptions, ModelLease, Models, Residency } from "../../src/models/models.ts";
import type { Download } from "../../src/models/hub/hub-types.ts";
import { FakeEngine } from "./fake-engine.ts";

/** A small model in memory that can speak and nothing else. */
export function fakeModel(changes: Partial<Model> = {}): Model {
  return {
    alias: "fake",
    source: { kind: "shipped", base: undefined },
    state: "loaded",
    path: "/models/fake.gguf",
    files: ["/models/fake.gguf"],
    projector: undefined,
    adapters: [],
    loadSettings: {},
    gguf: {
      architecture: "llama",
      name: "Fake",
      parameters: 1_000_000,
      vocabSize: 100,
      contextLength: 2048,
      embeddingLength: 64,
      headCount: 4,
      blockCount: 4,
      quantization: "Q8_0",
      fileSize: 1_100_000,
      chatTemplate: "{{ messages }}",
      infill: undefined,
      toolCallTokens: [],
      kvBytesPerToken: 128,
      weightBytes: { blocks: 1, largestInBlocks: 1, embedding: 0, output: 0 },
      purpose: "generate",
      auxiliary: undefined,
      media: { image: false, audio: false },
    },
    capabilities: { vision: false, audio: false, tools: false, thinking: false, json: true },
    settings: {
      system: undefined,
      template: undefined,
      sampling: {},
      maxTokens: undefined,
      stop: [],
      contextSize: undefined,
      gpuLayers: undefined,
      load: {},
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
    ...changes,
  };
}

const SAVED = {
  name: "story",
  isAutomatic: false,
  bytes: 4000,
  savedAt: Date.UTC(2026, 0, 2),
  header: { model: "a", engine: "b", settings: "c", tokens: 12, bytes: 3456, contextSize: 512 },
};

/** Models in a list, with the rules on states that the real ones keep; all are lent the same engine. */
export class FakeModels implements Models {
  readonly known: Map<string, Model>;
  readonly loads: LoadOptions[] = [];
  defaultAlias: string | undefined;
  readonly downloads: Download[] = [];
  /** Uploaded files by their digests; their paths are made of those. */
  readonly uploads = new Map<string, Uint8Array>();
  readonly blobs: Models["blobs"] = {
    find: async (digest) =>
      this.uploads.has(digest) ? `/blobs/${digest.replace(":", "-")}.gguf` : undefined,
    write: async (digest, pieces) => {
      this.uploads.set(digest, Buffer.concat(await Array.fromAsync(pieces)));
    },
  };
  readonly engine: FakeEngine;
  /** Those that are out. */
  leases = 0;
  readonly imports: ImportRequest[] = [];
  importSteps: readonly ImportStep[] = [];
  /** How each request wanted its model to be in memory. */
  readonly residencies: (Residency | undefined)[] = [];

  constructor(models: readonly Model[] = [fakeModel()], engine = new FakeEngine()) {
    this.engine = engine;
    this.known = new Map(models.map((model) => [model.alias, model]));
    this.defaultAlias = models.find((model) => model.isDefault)?.alias;
  }

  readonly slotCalls: unknown[] = [];
  readonly slots: Models["slots"] = {
    list: async (model) => {
      this.slotCalls.push({ model });
      return { slots: [{ id: 0, tokens: 12, isBusy: false, lastUsed: 5 }], saved: [SAVED] };
    },
    save: async (model, wanted) => this.#moved(model, wanted),
    restore: async (model, wanted) => this.#moved(model, wanted),
    erase: async (model, slot) => {
      this.slotCalls.push({ model, slot });
      return 12;
    },
    delete: async (model, name) => void this.slotCalls.push({ model, name }),
  };

  #moved(
    model: string,
    { slot = 0, name }: { readonly slot?: number | undefined; readonly name: string },
  ): Awaited<ReturnType<Models["slots"]["save"]>> {
    this.slotCalls.push({ model, slot, name });
    return { slot, name, tokens: 12, bytes: 3456, milliseconds: 7.8 };
  }

  async list(): Promise<readonly Model[]> {
    return [...this.known.values()];
  }

  async scaleAdapters(name: string, scales: readonly number[]): Promise<void> {
    const model = await this.get(name);
    const adapters = model.adapters.map((adapter, at) => ({
      ...adapter,
      scale: scales[at] ?? adapter.scale,
    }));
    this.known.set(name, { ...model, adapters });
  }

  async get(name: string): Promise<Model> {
    const model = this.known.get(name);
    if (!model) throw new ServiceError("model_not_found", `No model "${name}" is known.`);
    return model;
  }

  async setDefault(alias: string): Promise<void> {
    this.defaultAlias = alias;
  }

  async acquire(name: string | undefined, signal: AbortSignal, residency?: Residency): Promise<ModelLease> {
    signal.throwIfAborted();
    this.residencies.push(residency);
    const model = await this.get(name ?? this.defaultAlias ?? "");
    this.leases += 1;
    let lent = true;
    return {
      model,
      engine: this.engine,
      [Symbol.dispose]: () => {
        if (lent) this.leases -= 1;
        lent = false;
      },
    };
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

  discard: Models["discard"] = async () => 10;

  async *importFrom(request: ImportRequest): AsyncGenerator<ImportStep, void> {
    this.imports.push(request);
    yield* this.importSteps;
  }

  fit: Models["fit"] = async ({ fileBytes }) => ({ fits: true, neededBytes: fileBytes, contextSize: 4096 });

  async create(alias: string): Promise<Model> {
    return this.#put(fakeModel({ alias, source: { kind: "modelfile", base: "fake" } }));
  }

  async copy(source: string, target: string): Promise<Model> {
    return this.#put({ ...(await this.get(source)), alias: target });
  }

  quantize: Models["quantize"] = async ({ alias, quantization }, onProgress) => {
    onProgress({ from: "F16", to: quantization, completedBytes: 100, totalBytes: 100 });
    const fake = fakeModel({ alias, source: { kind: "modelfile", base: "fake" } });
    const model = this.#put({ ...fake, gguf: { ...fake.gguf, quantization } });
    return { model, sourceBytes: 400, sizeBytes: 100, bitsPerWeight: 4.5, fallbackTensors: 0 };
  };

  async modelfile(): Promise<string> {
    return "FROM /models/fake.gguf\n";
  }

  async close(): Promise<void> {}

  #put(model: Model): Model {
    this.known.set(model.alias, model);
    return model;
  }
}
