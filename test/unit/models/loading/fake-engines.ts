import type { Engine, EngineExit, EngineLoadOptions, StartEngine } from "../../../../src/engine/engine.ts";
import { contextTokens } from "../../../../src/engine/context-tokens.ts";
import type { EngineSpec } from "../../../../src/engine/protocol/engine-spec.ts";
import type { Clock } from "../../../../src/models/loading/clock.ts";

/** An engine that does nothing, and can be made to crash. */
export class FakeEngine implements Engine {
  readonly spec: EngineSpec;
  readonly info: Engine["info"];
  readonly pid = 1;
  readonly exited: Promise<EngineExit>;
  alive = true;
  /** Ending takes until this has settled. */
  untilEnded: Promise<void> = Promise.resolve();
  readonly #exit: (exit: EngineExit) => void;

  constructor(spec: EngineSpec, info: Partial<Engine["info"]> = {}) {
    this.spec = spec;
    this.info = {
      contextSize: spec.contextSize,
      contextTokens: contextTokens(spec),
      trainedContextSize: spec.contextSize,
      vocabSize: 100,
      embeddingSize: 64,
      layers: 2,
      gpuLayers: 0,
      threads: spec.threads,
      hasChatTemplate: true,
      hasImageInput: spec.projectorFile !== undefined,
      backendVersion: "fake",
      ...info,
    };
    const { promise, resolve } = Promise.withResolvers<EngineExit>();
    this.exited = promise;
    this.#exit = resolve;
  }

  generate(): never {
    throw new Error("a fake engine generates nothing");
  }

  embed(): never {
    throw new Error("a fake engine embeds nothing");
  }

  rerank(): never {
    throw new Error("a fake engine ranks nothing");
  }

  tokenize(): never {
    throw new Error("a fake engine has no vocabulary");
  }

  pieces(): never {
    throw new Error("a fake engine has no vocabulary");
  }

  async memoryUsage(): Promise<number> {
    return this.alive ? 1234 : 0;
  }

  async close(): Promise<void> {
    this.alive = false;
    await this.untilEnded;
    this.#exit({ expected: true, reason: "closed" });
    await this.exited;
  }

  /** Ends like a process that somebody has killed; resolves when everyone has been told. */
  async crash(reason = "killed by SIGKILL"): Promise<void> {
    this.alive = false;
    this.#exit({ expected: false, reason });
    await settle();
  }
}

export interface FakeStart {
  readonly spec: EngineSpec;
  readonly signal: AbortSignal | undefined;
  /** Says that another engine is started in place of the one that was asked for. */
  readonly makeRoom: EngineLoadOptions["makeRoom"];
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
      makeRoom: options.makeRoom,
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

/** A clock that only the test moves. */
export class FakeClock implements Clock {
  #now = 1_000_000;
  readonly #timers = new Set<{ at: number; callback: () => void }>();

  now(): number {
    return this.#now;
  }

  after(milliseconds: number, callback: () => void): () => void {
    const timer = { at: this.#now + milliseconds, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Lets time pass, with everything that becomes due on the way. */
  async advance(milliseconds: number): Promise<void> {
    this.#now += milliseconds;
    for (const timer of this.#timers) {
      if (timer.at > this.#now) continue;
      this.#timers.delete(timer);
      timer.callback();
    }
    await settle();
  }
}

/** Lets everything that waits for nothing but promises come to an end. */
export async function settle(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}
