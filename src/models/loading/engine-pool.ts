import { isDeepStrictEqual } from "node:util";
import type { Engine, EngineExit, StartEngine } from "../../engine/engine.ts";
import { plainEnd } from "../../engine/core/plain-reason.ts";
import type { EngineSpec } from "../../engine/protocol/engine-spec.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { reportFailure } from "../../events/report-failure.ts";
import type { ServiceEvent, ServiceEvents } from "../../events/service-events.ts";
import type { Model } from "../model.ts";
import type { Clock } from "./clock.ts";
import { Lease } from "./lease.ts";
import type { LoadPlan } from "./load-planner.ts";
import { LoadedModel } from "./loaded-model.ts";
import { MemoryBudget, type MemoryBudgetOptions } from "./memory-budget.ts";
import { Failures, type Crash } from "./failures.ts";

export interface EnginePoolOptions extends Pick<
  MemoryBudgetOptions,
  "budget" | "machineMemory" | "gpuBudget"
> {
  readonly startEngine: StartEngine;
  /** What whoever leases a model sees of it. */
  readonly describe: (loaded: LoadedModel) => Model;
  readonly events: Pick<ServiceEvents, "emit">;
  readonly clock: Clock;
}

type UnloadReason = Extract<ServiceEvent, { type: "model-unloaded" }>["reason"];

/**
 * The models in memory, at most one for each alias. Only the pool starts and closes engines. Between deciding and
 * acting it never awaits, so that two callers cannot both decide for the same memory or the same alias.
 */
export class EnginePool {
  readonly memory: MemoryBudget;
  readonly #options: EnginePoolOptions;
  readonly #failures: Failures;
  readonly #models = new Map<string, LoadedModel>();
  #isClosed = false;

  constructor(options: EnginePoolOptions) {
    this.#options = options;
    this.#failures = new Failures(options.clock);
    this.memory = new MemoryBudget({
      ...options,
      models: () => this.models(),
      evict: async (victim) => await this.#close(victim, "memory"),
    });
  }

  /** What is in memory under this alias; undefined: nothing. */
  model(alias: string): LoadedModel | undefined {
    return this.#models.get(alias);
  }

  models(): readonly LoadedModel[] {
    return [...this.#models.values()];
  }

  /** True for a model whose engine has crashed since it was loaded. */
  hasCrashed(alias: string): boolean {
    return this.#failures.crash(alias) !== undefined;
  }

  /**
   * Loads because somebody said so. Throws `model_already_loaded`, or `model_busy` while the same alias is being
   * loaded differently; the same load is waited for.
   */
  async load(alias: string, plan: LoadPlan, signal?: AbortSignal): Promise<void> {
    await this.settled(alias, signal);
    const present = this.#models.get(alias);
    if (present?.state === "loaded") {
      throw new ServiceError("model_already_loaded", `The model "${alias}" is loaded already.`);
    }
    if (present && !isDeepStrictEqual(present.plan.spec, plan.spec)) {
      throw new ServiceError("model_busy", `The model "${alias}" is being loaded with other settings.`);
    }
    this.#failures.forgive(alias);
    await (present ?? this.#start(alias, plan)).load.join(signal);
  }

  /** Waits while a model of this alias is ending. */
  async settled(alias: string, signal?: AbortSignal): Promise<void> {
    const ending = (): Promise<unknown> | undefined => this.#models.get(alias)?.ending;
    for (let wait = ending(); wait; wait = ending()) {
      await wait;
      signal?.throwIfAborted();
    }
  }

  /** Leases a model that is loaded at this moment. */
  tryLease(alias: string): Lease | undefined {
    const present = this.#models.get(alias);
    return present?.ready && this.#lease(present, present.ready);
  }

  /**
   * Leases a model, which is loaded for that where it is not: as it was when its engine crashed, else as planned.
   * Throws at once while a model that failed is held back.
   */
  async lease(alias: string, plan: () => Promise<LoadPlan>, signal: AbortSignal): Promise<Lease> {
    await this.settled(alias, signal);
    let present = this.#models.get(alias);
    if (!present) {
      const next = this.#failures.crash(alias)?.plan ?? (await plan());
      await this.settled(alias, signal);
      present = this.#models.get(alias);
      if (!present) this.#failures.check(alias);
      present ??= this.#start(alias, next);
    }
    // It counts as used while it is waited for, or it could be evicted before it is leased.
    present.retain();
    try {
      return this.#lease(present, await present.load.join(signal));
    } finally {
      present.release();
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
    const present = this.#models.get(alias);
    if (present?.state === "loaded") {
      if (onlyIdle && !present.idle) throw new ServiceError("model_busy", `The model "${alias}" is in use.`);
      return await this.#close(present, reason);
    }
    if (present) {
      throw new ServiceError("model_busy", `The model "${alias}" is ${present.state} at this moment.`);
    }
    this.#failures.forget(alias);
    throw new ServiceError("model_already_unloaded", `The model "${alias}" is not loaded.`);
  }

  /** Ends whatever runs under this alias, a load under way included; resolves when nothing does. */
  async clear(alias: string, why: ServiceError, reason: UnloadReason): Promise<void> {
    const present = this.#models.get(alias);
    if (present?.state === "loading") {
      present.load.abort(why);
      await present.load.settled;
    }
    const left = this.#models.get(alias);
    if (left?.state === "loaded") await this.#close(left, reason);
    else await left?.closed;
    this.#failures.forget(alias);
  }

  /** Ends all engines; nothing can be loaded afterwards. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const why = shuttingDown();
    await Promise.all(
      [...this.#models.keys()].map(async (alias) => await this.clear(alias, why, "shutdown")),
    );
  }

  #lease(loaded: LoadedModel, engine: Engine): Lease {
    return new Lease(loaded, engine, this.#options.describe(loaded), () => {
      // It has done its work.
      if (engine.alive) this.#failures.forgive(loaded.alias);
    });
  }

  /** Reserves the memory without awaiting; the load goes on by itself. */
  #start(alias: string, plan: LoadPlan): LoadedModel {
    if (this.#isClosed) throw shuttingDown();
    const candidate = { ...plan, alias };
    const freed = this.memory.reserve(candidate);
    // Loads that are planned at the same time reckon with the same free memory of the GPU.
    const isCrowded = this.memory.isGpuCrowded(candidate);
    const model: LoadedModel = new LoadedModel({
      alias,
      plan,
      clock: this.#options.clock,
      // Closed or not, the pool has dropped it; nobody waits to be told.
      onIdle: () => void this.#close(model, "idle").catch(() => undefined),
      start: async (signal) => {
        await freed;
        return await this.#run(model, isCrowded, signal);
      },
    });
    this.#models.set(alias, model);
    return model;
  }

  async #run(model: LoadedModel, isCrowded: boolean, signal: AbortSignal): Promise<Engine> {
    const { startEngine, events } = this.#options;
    const { alias, plan } = model;
    /** For an engine that is started otherwise than planned. */
    const makeRoom = async (spec: EngineSpec): Promise<void> => {
      const needs = plan.needsOf(spec);
      const freed = this.memory.reserve({ ...plan, ...needs, alias });
      model.needs = needs;
      await freed;
    };
    try {
      signal.throwIfAborted();
      const spec = isCrowded ? (await plan.replan()).spec : plan.spec;
      if (isCrowded) await makeRoom(spec);
      const engine = await startEngine(spec, {
        signal,
        alias,
        makeRoom,
        ...(plan.heapLimitOf && { heapLimit: plan.heapLimitOf }),
      });
      model.loaded(engine);
      const crash = this.#failures.crash(alias);
      this.#failures.recovered(alias);
      void engine.exited.then((exit) => this.#ended(model, exit));
      if (crash) events.emit({ type: "engine-restarted", model: alias, reason: crash.reason });
      events.emit({ type: "model-loaded", model: alias });
      return engine;
    } catch (error) {
      this.#drop(model);
      if (signal.aborted) throw error;
      throw this.#failed(alias, ServiceError.from(error));
    }
  }

  #ended(model: LoadedModel, exit: EngineExit): void {
    if (model.state !== "loaded") return;
    const { alias, plan } = model;
    this.#drop(model);
    const reason = plainEnd(exit.reason);
    const error = new ServiceError("engine_crashed", `The engine of "${alias}" ended: ${reason}.`, {
      cause: new Error(exit.reason),
    });
    this.#failed(alias, error, { plan, reason });
  }

  #failed(alias: string, error: ServiceError, crash?: Crash): ServiceError {
    this.#failures.add(alias, error, crash);
    reportFailure(this.#options.events, alias, error);
    return error;
  }

  async #close(model: LoadedModel, reason: UnloadReason): Promise<void> {
    const { engine } = model;
    if (!engine || model.state !== "loaded") return;
    try {
      await model.close(engine);
    } finally {
      this.#drop(model);
    }
    this.#options.events.emit({ type: "model-unloaded", model: model.alias, reason });
  }

  #drop(model: LoadedModel): void {
    model.gone();
    if (this.#models.get(model.alias) === model) this.#models.delete(model.alias);
  }
}

function shuttingDown(): ServiceError {
  return new ServiceError("shutting_down", "The daemon is shutting down.");
}
