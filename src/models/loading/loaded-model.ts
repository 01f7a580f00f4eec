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
  readonly start: (model: LoadedModel, signal: AbortSignal) => Promise<Engine>;
  /** Called when the engine has been idle for too long. */
  readonly onIdle: () => void;
}

/** A model in memory, from the decision to load it until its engine has ended. Only the pool creates and changes it. */
export class LoadedModel {
  readonly alias: string;
  readonly plan: LoadPlan;
  /** Resolves to the engine once the model is `loaded`. */
  readonly load: SharedTask<Engine>;
  /** Default scales of its adapters; undefined: those of its Modelfile. */
  adapterScales: readonly number[] | undefined;
  /** Memory reserved for it: as planned, or as its engine needed instead. */
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

  /** Number of requests that use it or wait for its load. */
  get users(): number {
    return this.#users;
  }

  get lastUsed(): number {
    return this.#lastUsed;
  }

  /** Time at which the idle model will be unloaded, in Unix milliseconds. */
  get expiresAt(): number | undefined {
    return this.#expiresAt;
  }

  get isIdle(): boolean {
    return this.#state === "loaded" && this.#users === 0;
  }

  get readyEngine(): Engine | undefined {
    return this.#state === "loaded" && this.#engine?.alive ? this.#engine : undefined;
  }

  /** Settles when the model has ended; undefined unless it is being unloaded, has crashed or its load was aborted. */
  get ending(): Promise<unknown> | undefined {
    if (this.#state === "unloading") return this.#closed;
    if (this.#state === "loading" && this.load.aborted) return this.load.settled;
    return this.#engine?.alive === false ? this.#engine.exited : undefined;
  }

  /** Settles when an engine that is being unloaded has ended; never rejects. */
  get closed(): Promise<void> {
    return this.#closed;
  }

  markLoaded(engine: Engine): void {
    this.#engine = engine;
    this.#state = "loaded";
    this.#touch();
  }

  /** Ends the engine by calling `end`, and marks the model as unloading. */
  async close(end: () => Promise<void>): Promise<void> {
    this.#stopExpiry();
    this.#state = "unloading";
    const closing = end();
    this.#closed = closing.catch(() => undefined);
    await closing;
  }

  markGone(): void {
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

  /** Sets the milliseconds of idleness after which the model is unloaded; Infinity: never. */
  setKeepAlive(milliseconds: number): void {
    this.#keepAliveMs = milliseconds;
    this.#touch();
  }

  #touch(): void {
    this.#lastUsed = this.#clock.now();
    this.#stopExpiry();
    if (!this.isIdle || this.#keepAliveMs === Number.POSITIVE_INFINITY) return;
    this.#expiresAt = this.#lastUsed + this.#keepAliveMs;
    this.#cancelExpiry = this.#clock.after(this.#keepAliveMs, this.#onIdle);
  }

  #stopExpiry(): void {
    this.#cancelExpiry?.();
    this.#cancelExpiry = undefined;
    this.#expiresAt = undefined;
  }
}

/** Typical time of a load, after which a retry may succeed. */
const RETRY_SECS = 2;

/** A loaded model that one request uses. Disposing the lease releases the model; doing so twice has no effect. */
export class Lease implements ModelLease {
  readonly model: Model;
  readonly engine: Engine;
  readonly #loaded: LoadedModel;
  readonly #onRelease: () => void;
  readonly explainExcess: (excess: ContextExcess) => string;
  adapter: string | undefined;
  #isActive = true;

  /** @param onRelease called once, when the lease is released */
  constructor(
    loaded: LoadedModel,
    engine: Engine,
    model: Model,
    explainExcess: (excess: ContextExcess) => string,
    onRelease: () => void,
  ) {
    this.model = model;
    this.engine = engine;
    this.#loaded = loaded;
    this.explainExcess = explainExcess;
    this.#onRelease = onRelease;
    loaded.retain();
  }

  /** Sets the milliseconds of idleness after which the model is unloaded. */
  setKeepAlive(milliseconds: number): void {
    this.#loaded.setKeepAlive(milliseconds);
  }

  [Symbol.dispose](): void {
    if (!this.#isActive) return;
    this.#isActive = false;
    this.#onRelease();
    this.#loaded.release();
  }
}

/** Creates the error for a request whose model is still being loaded or downloaded. */
export function stillLoading(alias: string, activity: "downloaded" | "loaded"): ServiceError {
  return new ServiceError("model_loading", `The model "${alias}" is being ${activity}.`, {
    retryAfterSecs: RETRY_SECS,
  });
}

/** Creates the error for a request whose model may not be loaded on demand. */
export function notLoaded(alias: string): ServiceError {
  return new ServiceError(
    "model_not_loaded",
    `The model "${alias}" is not loaded; load it with POST /api/models/load {"alias": ${JSON.stringify(alias)}} or "daybreak load ${alias}", or start the daemon without --no-auto-load (models.auto_load = false).`,
    { param: "model" },
  );
}

/** Creates the error for loading a model that is already loaded. */
export function alreadyLoaded(alias: string): ServiceError {
  return new ServiceError(
    "model_already_loaded",
    `The model "${alias}" is loaded already; to load it with other settings, unload it first, with POST /api/models/${alias}/unload or "daybreak unload ${alias}".`,
  );
}
