import { contextTokens, type EngineInfo, type EngineSpec } from "../../src/engine/protocol/engine-spec.ts";
import type { Engine, EngineExit, EngineLoadOptions, StartEngine } from "../../src/engine/engine.ts";
import type { GenerationEvent, GenerationRequest } from "../../src/engine/protocol/generation.ts";
import type {
  SlotRequest,
  SlotResult,
  TokenIds,
  TokenizeOptions,
  TokenPieces,
} from "../../src/engine/protocol/calls.ts";
import { ServiceError } from "../../src/errors/service-error.ts";
import { settle } from "./fake-clock.ts";

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
  /** Closing takes until this has settled. */
  untilEnded: Promise<void> = Promise.resolve();
  readonly #exit: (exit: EngineExit) => void;
  readonly #crash = new AbortController();

  /** Slots that are kept for who names them, and those that others have. */
  readonly reserved = new Set<number>();
  readonly busySlots = new Set<number>();

  constructor(spec: Partial<EngineSpec> = {}, info: Partial<EngineInfo> = {}) {
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
      slots: 2,
      threads: 1,
      batchSize: 64,
      flashAttention: "auto",
      contextShift: false,
      ...spec,
    };
    this.info = {
      contextSize: this.spec.contextSize,
      contextTokens: contextTokens(this.spec),
      trainedContextSize: this.spec.contextSize,
      vocabSize: 100,
      embeddingSize: 2,
      layers: 2,
      gpuLayers: 0,
      threads: this.spec.threads,
      hasChatTemplate: true,
      hasImageInput: this.spec.projectorFile !== undefined,
      hasAudioInput: this.spec.hearsAudio === true,
      backendVersion: "fake",
      ...info,
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

  /** Slots that are always empty. */
  async slots(request: SlotRequest): Promise<SlotResult> {
    const { action } = request;
    if (action === "reserve") {
      this.reserved.add(request.slot);
      return { action, isBusy: this.busySlots.has(request.slot) };
    }
    if (action === "release") this.reserved.delete(request.slot);
    if (action !== "list") return { action: "done" };
    const slot = { tokens: 0, isBusy: false, lastUsed: -1 };
    return { action, slots: Array.from({ length: this.spec.slots }, () => slot) };
  }

  memoryUsage(): Promise<number> {
    return Promise.resolve(this.alive ? 1234 : 0);
  }

  async close(): Promise<void> {
    this.#die("closed");
    await this.untilEnded;
    this.#exit({ expected: true, reason: "closed" });
    await this.exited;
  }

  /** Ends like a process that was killed; resolves when all listeners have been notified. */
  async crash(reason = "killed by SIGKILL"): Promise<void> {
    this.#die(reason);
    this.#exit({ expected: false, reason });
    await settle();
  }

  #die(reason: string): void {
    this.alive = false;
    this.#crash.abort(new ServiceError("engine_crashed", reason));
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

interface FakeStart {
  readonly spec: EngineSpec;
  readonly signal: AbortSignal | undefined;
  /** Says that another engine is started in place of the one that was asked for. */
  readonly freeContext: EngineLoadOptions["reserveMemory"];
  succeed(): FakeEngine;
  fail(error: unknown): void;
}

/** Starts fake engines: at once, or, when `manual`, as the test says. */
export class FakeEngines {
  readonly starts: FakeStart[] = [];
  readonly engines: FakeEngine[] = [];
  manual = false;
  /** Thrown by the next starts, when set. */
  error: unknown;

  readonly start: StartEngine = async (
    spec: EngineSpec,
    options: EngineLoadOptions = {},
  ): Promise<Engine> => {
    const { promise, resolve, reject } = Promise.withResolvers<Engine>();
    options.signal?.addEventListener("abort", () => reject(options.signal?.reason));
    const start: FakeStart = {
      spec,
      signal: options.signal,
      freeContext: options.reserveMemory,
      succeed: () => {
        const engine = new FakeEngine(spec);
        this.engines.push(engine);
        resolve(engine);
        return engine;
      },
      fail: reject,
    };
    this.starts.push(start);
    if (this.error !== undefined) start.fail(this.error);
    else if (!this.manual) start.succeed();
    return await promise;
  };

  get last(): FakeEngine {
    const engine = this.engines.at(-1);
    if (!engine) throw new Error("no engine has been started");
    return engine;
  }
}
