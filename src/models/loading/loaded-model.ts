import type { Engine } from "../../engine/engine.ts";
import type { Clock } from "./clock.ts";
import type { LoadPlan, MemoryNeeds } from "./load-planner.ts";
import { SharedTask } from "../../async/shared-task.ts";

export interface LoadedModelOptions {
  readonly alias: string;
  readonly plan: LoadPlan;
  readonly clock: Clock;
  /** Starts the engine. */
  readonly start: (signal: AbortSignal) => Promise<Engine>;
  /** Called when the engine has been idle for as long as it may be. */
  readonly onIdle: () => void;
}

/** A model in memory, from the decision to load it until its engine is gone. Only the pool makes and moves them. */
export class LoadedModel {
  readonly alias: string;
  readonly plan: LoadPlan;
  /** The load; resolves to the engine when the model is `loaded`. */
  readonly load: SharedTask<Engine>;
  /** What is reserved for it: what its plan needs, or the engine that was started in place of that. */
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
    this.load = new SharedTask(start);
  }

  get state(): "loading" | "loaded" | "unloading" | "gone" {
    return this.#state;
  }

  get engine(): Engine | undefined {
    return this.#engine;
  }

  /** Requests that use it or wait for it to be loaded. */
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

  /** The engine, when it can be leased at this moment. */
  get ready(): Engine | undefined {
    return this.#state === "loaded" && this.#engine?.alive ? this.#engine : undefined;
  }

  /** What settles when it has ended, while it is ending: unloaded, crashed, or left by everyone who wanted it. */
  get ending(): Promise<unknown> | undefined {
    if (this.#state === "unloading") return this.#closed;
    if (this.#state === "loading" && this.load.aborted) return this.load.settled;
    return this.#engine?.alive === false ? this.#engine.exited : undefined;
  }

  /** Settles when the engine is gone, if it is being unloaded; never rejects. */
  get closed(): Promise<void> {
    return this.#closed;
  }

  loaded(engine: Engine): void {
    this.#engine = engine;
    this.#state = "loaded";
    this.#touch();
  }

  /** Starts to end the engine. */
  async close(engine: Engine): Promise<void> {
    this.#stopExpiry();
    this.#state = "unloading";
    const closing = engine.close();
    this.#closed = closing.catch(() => undefined);
    await closing;
  }

  gone(): void {
    this.#stopExpiry();
    this.#state = "gone";
    this.#engine = undefined;
  }

  /** Counts a user more, which holds it back from eviction. */
  retain(): void {
    this.#users++;
    this.#touch();
  }

  release(): void {
    this.#users--;
    this.#touch();
  }

  /** Changes how long it stays when idle, in milliseconds, counted from now; Infinity: for good. */
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
