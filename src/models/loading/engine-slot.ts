import type { Engine } from "../../engine/engine.ts";
import type { Clock } from "./clock.ts";
import type { LoadRequest, MemoryNeeds } from "./load-request.ts";
import { SharedTask } from "./shared-task.ts";

export type SlotState = "loading" | "loaded" | "unloading" | "gone";

/**
 * The life of one engine, from the decision to load it until it is gone. Only the pool makes, moves and drops
 * slots.
 */
export class EngineSlot {
  readonly alias: string;
  readonly request: LoadRequest;
  /** The load; resolves to the engine when the slot is `loaded`. */
  readonly load: SharedTask<Engine>;
  /** What is booked for it: what its request needs, or the engine that was started in place of that. */
  needs: MemoryNeeds;
  readonly #clock: Clock;
  readonly #onIdle: () => void;
  #state: SlotState = "loading";
  #engine: Engine | undefined;
  #closed: Promise<void> | undefined;
  /** Milliseconds of idleness after which it is unloaded. */
  #keepAliveMs: number;
  #leases = 0;
  /** Callers who wait for the load in order to use the engine: it counts as used until they have it. */
  #claims = 0;
  #lastUsed: number;
  #expiresAt: number | undefined;
  #cancelExpiry: (() => void) | undefined;

  constructor(options: {
    alias: string;
    request: LoadRequest;
    clock: Clock;
    run: (signal: AbortSignal) => Promise<Engine>;
    /** Called when the engine has been idle for as long as its request allows. */
    onIdle: () => void;
  }) {
    this.alias = options.alias;
    this.request = options.request;
    this.needs = options.request;
    this.#keepAliveMs = options.request.keepAliveMs;
    this.#clock = options.clock;
    this.#onIdle = options.onIdle;
    this.#lastUsed = options.clock.now();
    this.load = new SharedTask(options.run);
  }

  get state(): SlotState {
    return this.#state;
  }

  get engine(): Engine | undefined {
    return this.#engine;
  }

  get leases(): number {
    return this.#leases;
  }

  get lastUsed(): number {
    return this.#lastUsed;
  }

  /** Unix milliseconds at which the idle engine will be unloaded. */
  get expiresAt(): number | undefined {
    return this.#expiresAt;
  }

  get idle(): boolean {
    return this.#state === "loaded" && this.#leases === 0 && this.#claims === 0;
  }

  /** Settles when the engine is gone, if it is ending; never rejects. */
  get closed(): Promise<void> {
    return this.#closed ?? Promise.resolve();
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

  /** Holds the engine back from eviction until the returned function is called. */
  claim(): () => void {
    this.#claims++;
    return () => {
      this.#claims--;
      this.#touch();
    };
  }

  /** Counts one user more until the returned function is called, which may be called again to no effect. */
  lend(): () => void {
    this.#leases++;
    this.#touch();
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#leases--;
      this.#touch();
    };
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
