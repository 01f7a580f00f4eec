import type { Engine, EngineExit } from "../../../src/engine/engine.ts";
import type { GenerationEvent, GenerationRequest } from "../../../src/engine/protocol/generation.ts";
import type { EngineInfo, EngineSpec } from "../../../src/engine/protocol/engine-spec.ts";
import type { TokenIds, TokenizeOptions, TokenPieces } from "../../../src/engine/protocol/tokens.ts";
import { ServiceError } from "../../../src/errors/service-error.ts";
import type { Model, ModelLease, Models, Residency } from "../../../src/models/model.ts";

export const DONE: Extract<GenerationEvent, { type: "done" }> = {
  type: "done",
  reason: "stop",
  usage: { promptTokens: 7, completionTokens: 3, cachedTokens: 0, reasoningTokens: 0 },
  timings: { promptMs: 10, completionMs: 30 },
};

export function eventsOf(...texts: string[]): GenerationEvent[] {
  return [{ type: "start" }, ...texts.map((text) => ({ type: "text-delta", text }) as const), DONE];
}

/** Waits until the signal aborts, and throws its reason. */
export function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

type Script = (request: GenerationRequest, signal: AbortSignal) => AsyncIterable<GenerationEvent>;

/** Begins a text in the vocabulary of the {@link FakeEngine}. */
export const BEGIN_TOKEN = 1;
const BEGIN_BYTES = new TextEncoder().encode("<s>");

/** An engine whose answers are scripted and that notes how many calls were in flight. */
export class FakeEngine implements Engine {
  readonly spec: EngineSpec;
  readonly info: EngineInfo;
  readonly pid = 1;
  alive = true;
  readonly exited: Promise<EngineExit>;
  readonly requests: GenerationRequest[] = [];
  inFlight = 0;
  mostInFlight = 0;
  script: Script = async function* () {
    yield* eventsOf("Hello", " world");
  };
  /** Runs inside of every embed and rerank call. */
  onText: (text: string, signal: AbortSignal) => Promise<void> = async () => {};
  readonly #exit: (exit: EngineExit) => void;
  readonly #crash = new AbortController();

  constructor({ slots = 2, hasChatTemplate = true }: { slots?: number; hasChatTemplate?: boolean } = {}) {
    const { promise, resolve } = Promise.withResolvers<EngineExit>();
    this.exited = promise;
    this.#exit = resolve;
    this.spec = {
      modelFiles: ["/models/fake.gguf"],
      adapters: [],
      purpose: "generate",
      contextSize: 4096,
      sharedContext: false,
      gpuLayers: 0,
      slots,
      threads: 1,
      batchSize: 64,
      flashAttention: "auto",
      contextShift: false,
    };
    this.info = {
      contextSize: 4096,
      contextTokens: slots * 4096,
      trainedContextSize: 4096,
      vocabSize: 100,
      embeddingSize: 2,
      layers: 1,
      gpuLayers: 0,
      threads: 1,
      hasChatTemplate,
      hasImageInput: false,
      backendVersion: "fake",
    };
  }

  async generate(
    request: GenerationRequest,
    onEvent: (event: GenerationEvent) => void,
    signal: AbortSignal,
  ): Promise<void> {
    signal.throwIfAborted();
    this.requests.push(request);
    this.#enter();
    const ended = AbortSignal.any([signal, this.#crash.signal]);
    try {
      for await (const event of this.script(request, ended)) {
        ended.throwIfAborted();
        onEvent(event);
      }
      ended.throwIfAborted();
    } finally {
      this.inFlight -= 1;
    }
  }

  async embed(text: string, signal: AbortSignal): Promise<{ vector: number[]; tokens: number }> {
    await this.#text(text, signal);
    return { vector: [text.length, 0], tokens: text.length };
  }

  async rerank(
    _query: string,
    document: string,
    signal: AbortSignal,
  ): Promise<{ score: number; tokens: number }> {
    await this.#text(document, signal);
    return { score: document.length, tokens: document.length };
  }

  /** One token for each byte, and one to begin with. */
  tokenize(text: string, { addSpecial }: TokenizeOptions): Promise<TokenIds> {
    const bytes = new TextEncoder().encode(text);
    return Promise.resolve(Int32Array.from(addSpecial ? [BEGIN_TOKEN, ...bytes] : bytes));
  }

  pieces(tokens: TokenIds): Promise<TokenPieces> {
    const pieces = Array.from(tokens, (token) => (token === BEGIN_TOKEN ? [...BEGIN_BYTES] : [token]));
    let end = 0;
    const ends = Int32Array.from(pieces, (piece) => (end += piece.length));
    return Promise.resolve({ bytes: Uint8Array.from(pieces.flat()), ends });
  }

  memoryUsage(): Promise<number> {
    return Promise.resolve(0);
  }

  async close(): Promise<void> {
    this.#end({ expected: true, reason: "closed" });
  }

  crash(reason: string): void {
    this.#end({ expected: false, reason });
  }

  #end(exit: EngineExit): void {
    this.alive = false;
    this.#crash.abort(new ServiceError("engine_crashed", exit.reason));
    this.#exit(exit);
  }

  async #text(text: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#enter();
    try {
      await this.onText(text, signal);
    } finally {
      this.inFlight -= 1;
    }
  }

  #enter(): void {
    this.inFlight += 1;
    this.mostInFlight = Math.max(this.mostInFlight, this.inFlight);
    if (this.inFlight > this.spec.slots) throw new Error("more calls in flight than slots");
  }
}

export function fakeModel(changes: Partial<Model> = {}): Model {
  return {
    alias: "fake",
    source: { kind: "file" },
    state: "loaded",
    path: "/models/fake.gguf",
    files: ["/models/fake.gguf"],
    projector: undefined,
    adapters: [],
    gguf: {
      architecture: "llama",
      name: undefined,
      parameters: 1,
      vocabSize: 100,
      contextLength: 512,
      embeddingLength: 2,
      headCount: 1,
      blockCount: 1,
      quantization: "F16",
      fileSize: 1,
      chatTemplate: "{{ messages }}",
      infill: undefined,
      callTokens: [],
      kvBytesPerToken: 1,
      weightBytes: { blocks: 1, largestInBlocks: 1, embedding: 0, output: 0 },
      purpose: "generate",
      auxiliary: undefined,
    },
    capabilities: { vision: false, tools: false, thinking: false, json: true },
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
    contextSize: 512,
    gpuLayers: 0,
    isDefault: true,
    activeRequests: 0,
    modifiedAt: 0,
    memoryBytes: undefined,
    expiresAt: undefined,
    ...changes,
  };
}

/** Lends one engine and counts the leases that are out. */
export class FakeModels implements Pick<Models, "acquire"> {
  leases = 0;
  /** How each request wanted its model to be in memory. */
  readonly residencies: (Residency | undefined)[] = [];
  readonly engine: FakeEngine;
  readonly model: Model;

  constructor(engine: FakeEngine, model: Model = fakeModel()) {
    this.engine = engine;
    this.model = model;
  }

  async acquire(name: string | undefined, signal: AbortSignal, residency?: Residency): Promise<ModelLease> {
    signal.throwIfAborted();
    this.residencies.push(residency);
    if (name !== undefined && name !== this.model.alias) {
      throw new ServiceError("model_not_found", `There is no model "${name}".`);
    }
    this.leases += 1;
    let lent = true;
    return {
      model: this.model,
      engine: this.engine,
      [Symbol.dispose]: () => {
        if (lent) this.leases -= 1;
        lent = false;
      },
    };
  }
}
