import { SharedTask } from "../../async/promises.ts";
import type { Engine } from "../../engine/engine.ts";
import { type ContextExcess, ServiceError } from "../../errors/service-error.ts";
import type { Model } from "../model.ts";
import type { ModelLease } from "../models.ts";
import type { Clock } from "./available-memory.ts";
import type { LoadPlan, MemoryNeeds } from "./load-planner.ts";

interface LoadedModelOptions {
  readonly alias: string;
  readonly plan: LoadPlan;
  readonly clock: Clock;
  /** Starts the engine. */
  readonly start: (model: LoadedModel, signal: AbortSignal) => Promise<Engine>;
  /** Called when the engine has been idle for too long. */
  readonly onIdle: () => void;
}

/** A model in memory, from the decision to load it until its engine has ended. Only the pool creates and changes them. */
export class LoadedModel {
  readonly alias: string;
  readonly plan: LoadPlan;
  /** The load; resolves to the engine once the model is `loaded`. */
  readonly load: SharedTask<Engine>;
  /** Of its adapters, on requests that do not choose; undefined: as its Modelfile says. */
  adapterScales: readonly number[] | undefined;
  /** Memory reserved for it: as planned, or for the engine that was started instead. */
  needs: MemoryNeeds;
  readonly #clock: Clock;
  readonly #onIdle: () => void;
  #state: "loading" | "loaded" | "unloading" | "gone" = "loading";
  #engine: Engine | undefined;
  #closed: Promise<void> = Promise.resolve();
  #keepAliveMs: number;
  #users = 0;
  #lastUsed: number;
  #expiresAt: number | undefined;
  #cancelExpiry: (() => void) | undefined;

  constructor({ alias, plan, clock, start, onIdle }: LoadedModelOptions) {
    this.alias = alias;
    this.plan = plan;
    this.needs = plan;
    this.#keepAliveMs = plan.keepAliveMs;
    this.#clock = clock;
    this.#onIdle = onIdle;
    this.#lastUsed = clock.now();
    this.load = new SharedTask(async (signal) => await start(this, signal));
  }

  get state(): "loading" | "loaded" | "unloading" | "gone" {
    return this.#state;
  }

  get engine(): Engine | undefined {
    return this.#engine;
  }

  /** Requests that use it or wait for it to load. */
  get users(): number {
    return this.#users;
  }

  get lastUsed(): number {
    return this.#lastUsed;
  }

  /** Unix milliseconds at which the idle engine will be unloaded. */
  get expiresAt(): number | undefined {
    return this.#expiresAt;
  }

  get idle(): boolean {
    return this.#state === "loaded" && this.#users === 0;
  }

  /** The engine, if it can be leased right now. */
  get ready(): Engine | undefined {
    return this.#state === "loaded" && this.#engine?.alive ? this.#engine : undefined;
  }

  /** While it is ending (unloaded, crashed, or no longer wanted), a promise that settles when it has ended. */
  get ending(): Promise<unknown> | undefined {
    if (this.#state === "unloading") return this.#closed;
    if (this.#state === "loading" && this.load.aborted) return this.load.settled;
    return this.#engine?.alive === false ? this.#engine.exited : undefined;
  }

  /** If it is being unloaded, settles when the engine has ended; never rejects. */
  get closed(): Promise<void> {
    return this.#closed;
  }

  loaded(engine: Engine): void {
    this.#engine = engine;
    this.#state = "loaded";
    this.#touch();
  }

  /** Begins to end the engine. @param end ends it */
  async close(end: () => Promise<void>): Promise<void> {
    this.#stopExpiry();
    this.#state = "unloading";
    const closing = end();
    this.#closed = closing.catch(() => undefined);
    await closing;
  }

  gone(): void {
    this.#stopExpiry();
    this.#state = "gone";
    this.#engine = undefined;
  }

  /** Adds a user, which prevents eviction. */
  retain(): void {
    this.#users++;
    this.#touch();
  }

  release(): void {
    this.#users--;
    this.#touch();
  }

  /** Changes how long it stays loaded when idle, in milliseconds from now; Infinity: forever. */
  keepFor(milliseconds: number): void {
    this.#keepAliveMs = milliseconds;
    this.#touch();
  }

  #touch(): void {
    this.#lastUsed = this.#clock.now();
    this.#stopExpiry();
    if (!this.idle || this.#keepAliveMs === Number.POSITIVE_INFINITY) return;
    this.#expiresAt = this.#lastUsed + this.#keepAliveMs;
    this.#cancelExpiry = this.#clock.after(this.#keepAliveMs, this.#onIdle);
  }

  #stopExpiry(): void {
    this.#cancelExpiry?.();
    this.#cancelExpiry = undefined;
    this.#expiresAt = undefined;
  }
}

/** Loading takes seconds; after that a retry can succeed. */
const RETRY_SECS = 2;

/** A loaded model, held by one request. Disposing it releases the model; doing so twice has no effect. */
export class Lease implements ModelLease {
  readonly model: Model;
  readonly engine: Engine;
  readonly #loaded: LoadedModel;
  readonly #onReturn: () => void;
  readonly explainExcess: (excess: ContextExcess) => string;
  adapter: string | undefined;
  #isHeld = true;

  /**
   * @param model description for the request
   * @param explain what a client is told whose prompt is longer than the context
   * @param onReturn called once, when the lease is released
   */
  constructor(
    loaded: LoadedModel,
    engine: Engine,
    model: Model,
    explain: (excess: ContextExcess) => string,
    onReturn: () => void,
  ) {
    this.model = model;
    this.engine = engine;
    this.#loaded = loaded;
    this.explainExcess = explain;
    this.#onReturn = onReturn;
    loaded.retain();
  }

  /** Changes how long the model stays loaded when idle, in milliseconds. */
  keepFor(milliseconds: number): void {
    this.#loaded.keepFor(milliseconds);
  }

  [Symbol.dispose](): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#onReturn();
    this.#loaded.release();
  }
}

/** The error for a request that comes before its model is there. */
export function stillLoading(alias: string, being: "downloaded" | "loaded"): ServiceError {
  return new ServiceError("model_loading", `The model "${alias}" is being ${being}.`, {
    retryAfterSecs: RETRY_SECS,
  });
}

/** The error for a request whose model may not be loaded on demand. */
export function notLoaded(alias: string): ServiceError {
  return new ServiceError(
    "model_not_loaded",
    `The model "${alias}" is not loaded; load it with POST /api/models/load {"alias": ${JSON.stringify(alias)}} or "daybreak load ${alias}", or start the daemon without --no-auto-load (models.auto_load = false).`,
    { param: "model" },
  );
}

/** The error of a load of a model that is loaded. */
export function alreadyLoaded(alias: string): ServiceError {
  return new ServiceError(
    "model_already_loaded",
    `The model "${alias}" is loaded already; to load it with other settings, unload it first, with POST /api/models/${alias}/unload or "daybreak unload ${alias}".`,
  );
}
