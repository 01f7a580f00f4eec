import type { Engine, EngineExit, StartEngine } from "../../engine/engine.ts";
import { plainEnd } from "../../engine/core/plain-reason.ts";
import type { EngineSpec } from "../../engine/protocol/engine-spec.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { reportFailure } from "../../events/report-failure.ts";
import type { ServiceEvent, ServiceEvents } from "../../events/service-events.ts";
import type { Clock } from "./clock.ts";
import { EngineSlot } from "./engine-slot.ts";
import { asksForSame, type LoadRequest } from "./load-request.ts";
import { MemoryBook, type MemoryBookOptions } from "./memory-book.ts";
import { RestartBackoff } from "./restart-backoff.ts";

export interface EnginePoolOptions extends Pick<MemoryBookOptions, "budget" | "machineMemory" | "gpuBudget"> {
  readonly startEngine: StartEngine;
  readonly events: Pick<ServiceEvents, "emit">;
  readonly clock: Clock;
}

/** An engine lent to one request. */
export interface EngineLoan extends Disposable {
  readonly engine: Engine;
  readonly slot: EngineSlot;
}

export type UnloadReason = Extract<ServiceEvent, { type: "model-unloaded" }>["reason"];

/**
 * The engines that run, at most one for each alias. Only the pool starts and closes engines. Between deciding
 * and acting it never awaits, so that two callers cannot both decide for the same memory or the same alias.
 */
export class EnginePool {
  readonly memory: MemoryBook;
  readonly #options: EnginePoolOptions;
  readonly #backoff: RestartBackoff;
  readonly #slots = new Map<string, EngineSlot>();
  /** Models whose engine ended by itself, how it was loaded and why it ended: the next request loads them again. */
  readonly #crashed = new Map<string, { readonly request: LoadRequest; readonly reason: string }>();
  #isClosed = false;

  constructor(options: EnginePoolOptions) {
    this.#options = options;
    this.#backoff = new RestartBackoff(options.clock);
    this.memory = new MemoryBook({
      ...options,
      slots: () => this.slots(),
      evict: async (alias) => await this.#close(this.#slots.get(alias), "memory"),
    });
  }

  /** What runs under this alias; undefined: nothing. */
  slot(alias: string): EngineSlot | undefined {
    return this.#slots.get(alias);
  }

  slots(): readonly EngineSlot[] {
    return [...this.#slots.values()];
  }

  /** How a model was loaded whose engine has crashed since. */
  crashedRequest(alias: string): LoadRequest | undefined {
    return this.#crashed.get(alias)?.request;
  }

  /**
   * Loads because somebody said so. Throws `model_already_loaded`, or `model_busy` while the same alias is being
   * loaded differently; the same load is waited for.
   */
  async load(alias: string, request: LoadRequest, signal?: AbortSignal): Promise<void> {
    await this.settled(alias, signal);
    const slot = this.#slots.get(alias);
    if (slot?.state === "loaded") {
      throw new ServiceError("model_already_loaded", `The model "${alias}" is loaded already.`);
    }
    if (slot && !asksForSame(slot.request, request)) {
      throw new ServiceError("model_busy", `The model "${alias}" is being loaded with other settings.`);
    }
    this.#backoff.clear(alias);
    await (slot ?? this.#start(alias, request)).load.join(signal);
  }

  /** Waits while an engine of this alias is ending: unloaded, crashed, or left by everyone who wanted it. */
  async settled(alias: string, signal?: AbortSignal): Promise<void> {
    for (;;) {
      const slot = this.#slots.get(alias);
      if (slot?.state === "unloading") await slot.closed;
      else if (slot?.state === "loading" && slot.load.aborted) await slot.load.settled;
      else if (slot?.state === "loaded" && slot.engine?.alive === false) await slot.engine.exited;
      else return;
      signal?.throwIfAborted();
    }
  }

  /** Lends the engine when it is loaded. */
  tryLend(alias: string): EngineLoan | undefined {
    const slot = this.#slots.get(alias);
    const engine = slot?.engine;
    if (slot?.state !== "loaded" || !engine?.alive) return undefined;
    return this.#lend(slot, engine);
  }

  /** Lends the engine, after loading it when it is not loaded. Throws at once while a failed model is held back. */
  async lend(alias: string, request: LoadRequest, signal: AbortSignal): Promise<EngineLoan> {
    await this.settled(alias, signal);
    const loan = this.tryLend(alias);
    if (loan) return loan;
    let slot = this.#slots.get(alias);
    if (!slot || slot.state === "loaded") {
      this.#backoff.check(alias);
      slot = this.#start(alias, request);
    }
    const release = slot.claim();
    try {
      return this.#lend(slot, await slot.load.join(signal));
    } finally {
      release();
    }
  }

  /**
   * Ends the engine; resolves when it is gone. Throws `model_already_unloaded`, or `model_busy` when the model is
   * being loaded or unloaded, and with onlyIdle when it is in use.
   */
  async unload(
    alias: string,
    reason: UnloadReason,
    { onlyIdle = false }: { onlyIdle?: boolean } = {},
  ): Promise<void> {
    const slot = this.#slots.get(alias);
    if (slot?.state === "loaded") {
      if (onlyIdle && !slot.idle) throw new ServiceError("model_busy", `The model "${alias}" is in use.`);
      await this.#close(slot, reason);
      return;
    }
    if (slot) throw new ServiceError("model_busy", `The model "${alias}" is ${slot.state} at this moment.`);
    this.#crashed.delete(alias);
    this.#backoff.clear(alias);
    throw new ServiceError("model_already_unloaded", `The model "${alias}" is not loaded.`);
  }

  /** Ends whatever runs under this alias, a load under way included; resolves when nothing does. */
  async clear(alias: string, why: ServiceError, reason: UnloadReason): Promise<void> {
    const slot = this.#slots.get(alias);
    if (slot?.state === "loading") {
      slot.load.abort(why);
      await slot.load.settled;
    }
    const left = this.#slots.get(alias);
    if (left?.state === "loaded") await this.#close(left, reason);
    else await left?.closed;
    this.#crashed.delete(alias);
    this.#backoff.clear(alias);
  }

  /** Ends all engines; nothing can be loaded afterwards. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const why = shuttingDown();
    await Promise.all([...this.#slots.keys()].map(async (alias) => await this.clear(alias, why, "shutdown")));
  }

  #lend(slot: EngineSlot, engine: Engine): EngineLoan {
    const giveBack = slot.lend();
    return {
      engine,
      slot,
      [Symbol.dispose]: () => {
        if (engine.alive) this.#backoff.clear(slot.alias);
        giveBack();
      },
    };
  }

  /** Decides on memory and takes the slot, without awaiting; the load goes on in the slot. */
  #start(alias: string, request: LoadRequest): EngineSlot {
    if (this.#isClosed) throw shuttingDown();
    const freed = this.memory.makeRoom(alias, request, request.mayEvict);
    // Loads that are planned at the same time reckon with the same free memory of the GPU.
    const isCrowded = this.memory.isCrowded(alias, request, request.mayEvict);
    const crash = this.#crashed.get(alias);
    const slot: EngineSlot = new EngineSlot({
      alias,
      request,
      clock: this.#options.clock,
      // Closed or not, the pool has dropped it; nobody waits to be told.
      onIdle: () => void this.#close(slot, "idle").catch(() => undefined),
      run: async (signal) => {
        await freed;
        return await this.#run(slot, isCrowded, signal, crash?.reason);
      },
    });
    this.#slots.set(alias, slot);
    return slot;
  }

  async #run(
    slot: EngineSlot,
    isCrowded: boolean,
    signal: AbortSignal,
    crashReason: string | undefined,
  ): Promise<Engine> {
    const { startEngine, events } = this.#options;
    const { alias, request } = slot;
    const makeRoom = async (spec: EngineSpec): Promise<void> => await this.memory.rebook(slot, spec);
    try {
      signal.throwIfAborted();
      const spec = isCrowded ? (await request.replan()).spec : request.spec;
      if (isCrowded) await makeRoom(spec);
      const engine = await startEngine(spec, {
        signal,
        alias,
        makeRoom,
        ...(request.heapLimitOf && { heapLimit: request.heapLimitOf }),
      });
      slot.loaded(engine);
      this.#crashed.delete(alias);
      void engine.exited.then((exit) => this.#ended(slot, exit));
      if (crashReason !== undefined) {
        events.emit({ type: "engine-restarted", model: alias, reason: crashReason });
      }
      events.emit({ type: "model-loaded", model: alias });
      return engine;
    } catch (error) {
      this.#drop(slot);
      if (!signal.aborted) {
        const failure = ServiceError.from(error);
        this.#backoff.failed(alias, failure);
        reportFailure(events, alias, failure);
        throw failure;
      }
      throw error;
    }
  }

  #ended(slot: EngineSlot, exit: EngineExit): void {
    if (slot.state !== "loaded") return;
    this.#drop(slot);
    const reason = plainEnd(exit.reason);
    const error = new ServiceError("engine_crashed", `The engine of "${slot.alias}" ended: ${reason}.`, {
      cause: new Error(exit.reason),
    });
    this.#crashed.set(slot.alias, { request: slot.request, reason });
    this.#backoff.failed(slot.alias, error);
    reportFailure(this.#options.events, slot.alias, error);
  }

  async #close(slot: EngineSlot | undefined, reason: UnloadReason): Promise<void> {
    const engine = slot?.engine;
    if (!slot || !engine || slot.state !== "loaded") return;
    try {
      await slot.close(engine);
    } finally {
      this.#drop(slot);
    }
    this.#options.events.emit({ type: "model-unloaded", model: slot.alias, reason });
  }

  #drop(slot: EngineSlot): void {
    slot.gone();
    if (this.#slots.get(slot.alias) === slot) this.#slots.delete(slot.alias);
  }
}

function shuttingDown(): ServiceError {
  return new ServiceError("shutting_down", "The daemon is shutting down.");
}
