import { isDeepStrictEqual } from "node:util";
import type { Engine, EngineExit, StartEngine } from "../../engine/engine.ts";
import { explainExit } from "../../engine/core/failure-text.ts";
import type { EngineSpec } from "../../engine/protocol/engine-spec.ts";
import { type ContextExcess, ServiceError } from "../../errors/service-error.ts";
import { reportFailure, type ServiceEvent, type ServiceEvents } from "../../events/service-events.ts";
import type { Model } from "../model.ts";
import type { PromptCache } from "../slots/prompt-cache.ts";
import type { Clock } from "./available-memory.ts";
import { type Crash, explainExcess, LoadFailures } from "./load-failures.ts";
import { alreadyLoaded, Lease, LoadedModel } from "./loaded-model.ts";
import type { LoadPlan } from "./load-planner.ts";
import { MemoryBudget, type MemoryBudgetOptions } from "./memory-budget.ts";

interface EnginePoolOptions extends Pick<MemoryBudgetOptions, "budget" | "memory"> {
  readonly startEngine: StartEngine;
  readonly describe: (loaded: LoadedModel) => Model;
  /** Saves slots of unloaded models and restores them; absent: they are lost. */
  readonly prompts?: PromptCache | undefined;
  readonly events: Pick<ServiceEvents, "emit">;
  readonly clock: Clock;
}

type UnloadReason = Extract<ServiceEvent, { type: "model-unloaded" }>["reason"] | "deleted";

/**
 * The models in memory, at most one per alias. Only the pool starts and closes engines. It never awaits between a
 * decision and its execution, so that two callers cannot claim the same memory or alias.
 */
export class EnginePool {
  readonly memory: MemoryBudget;
  readonly #options: EnginePoolOptions;
  readonly #failures: LoadFailures;
  readonly #models = new Map<string, LoadedModel>();
  #isClosed = false;

  constructor(options: EnginePoolOptions) {
    this.#options = options;
    this.#failures = new LoadFailures(options.clock);
    this.memory = new MemoryBudget({
      ...options,
      models: () => this.models(),
      now: () => options.clock.now(),
      evict: async (victim) => await this.#close(victim, "memory"),
    });
  }

  model(alias: string): LoadedModel | undefined {
    return this.#models.get(alias);
  }

  models(): readonly LoadedModel[] {
    return [...this.#models.values()];
  }

  /** True if the model's engine has crashed and not been restarted since. */
  hasCrashed(alias: string): boolean {
    return this.#failures.crashes.has(alias);
  }

  /**
   * Loads a model by explicit request. Throws `model_already_loaded`, or `model_busy` while the same alias is being
   * loaded with other settings; joins a load with the same settings.
   */
  async load(alias: string, plan: LoadPlan, signal?: AbortSignal): Promise<void> {
    await this.waitForUnload(alias, signal);
    const present = this.#models.get(alias);
    if (present?.state === "loaded") {
      throw alreadyLoaded(alias);
    }
    if (present && !isSameLoad(present.plan, plan)) {
      throw new ServiceError("model_busy", `The model "${alias}" is being loaded with other settings.`);
    }
    this.#failures.clearFailures(alias);
    await (present ?? this.#start(alias, plan)).load.join(signal);
  }

  async waitForUnload(alias: string, signal?: AbortSignal): Promise<void> {
    const currentEnd = (): Promise<unknown> | undefined => this.#models.get(alias)?.ending;
    for (let wait = currentEnd(); wait; wait = currentEnd()) {
      await wait;
      signal?.throwIfAborted();
    }
  }

  tryLease(alias: string): Lease | undefined {
    const present = this.#models.get(alias);
    return present?.readyEngine && this.#lease(present, present.readyEngine);
  }

  /**
   * Leases a model, and loads it first if necessary, with the settings of its crashed engine or else as planned. Throws
   * immediately while the back-off after failures lasts.
   */
  async lease(alias: string, plan: () => Promise<LoadPlan>, signal: AbortSignal): Promise<Lease> {
    await this.waitForUnload(alias, signal);
    let present = this.#models.get(alias);
    if (!present) {
      const next = this.#failures.crashes.get(alias)?.plan ?? (await plan());
      await this.waitForUnload(alias, signal);
      present = this.#models.get(alias);
      if (!present) this.#failures.check(alias);
      present ??= this.#start(alias, next);
    }
    // Counts as a user while it waits; otherwise the model could be evicted before it is leased.
    present.retain();
    try {
      return this.#lease(present, await present.load.join(signal));
    } finally {
      present.release();
    }
  }

  /**
   * Unloads a model; resolves when its engine has ended. Throws `model_already_unloaded`, or `model_busy` while it is
   * loaded or unloaded or, with onlyIdle, in use.
   */
  async unload(alias: string, reason: UnloadReason, options: { onlyIdle?: boolean } = {}): Promise<void> {
    const present = this.#models.get(alias);
    if (present?.state === "loaded") {
      if (options.onlyIdle && !present.isIdle) {
        throw new ServiceError("model_busy", `The model "${alias}" is in use.`);
      }
      return await this.#close(present, reason);
    }
    if (present) throw new ServiceError("model_busy", `The model "${alias}" is ${present.state} now.`);
    this.#failures.clear(alias);
    throw new ServiceError("model_already_unloaded", `The model "${alias}" is not loaded.`);
  }

  /** Ends the engine of this alias, or its load, which the error rejects; resolves when it has ended. */
  async terminate(alias: string, error: ServiceError, reason: UnloadReason): Promise<void> {
    const present = this.#models.get(alias);
    if (present?.state === "loading") {
      present.load.abort(error);
      await present.load.settled;
    }
    const remaining = this.#models.get(alias);
    if (remaining?.state === "loaded") await this.#close(remaining, reason);
    else await remaining?.closed;
    this.#failures.clear(alias);
  }

  /** Ends all engines; nothing can be loaded afterwards. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const error = shuttingDown();
    const closing = [...this.#models.keys()].map(
      async (alias) => await this.terminate(alias, error, "shutdown"),
    );
    await Promise.all(closing);
  }

  #lease(loaded: LoadedModel, engine: Engine): Lease {
    const { alias, plan } = loaded;
    const explain = (excess: ContextExcess): string =>
      explainExcess(excess, plan, this.memory.free(alias, plan.mayEvict));
    return new Lease(loaded, engine, this.#options.describe(loaded), explain, () => {
      // The engine has served a request, so earlier failures no longer count.
      if (engine.alive) this.#failures.clearFailures(loaded.alias);
    });
  }

  /** Reserves memory synchronously and starts the load. */
  #start(alias: string, requestedPlan: LoadPlan): LoadedModel {
    if (this.#isClosed) throw shuttingDown();
    const { plan, freed } = this.#reserve(alias, requestedPlan);
    const candidate = { ...plan, alias };
    // Two loads that were planned at the same time were planned for the same free GPU memory.
    const exceedsGpu = this.memory.exceedsFreeGpu(candidate);
    const model: LoadedModel = new LoadedModel({
      alias,
      plan,
      clock: this.#options.clock,
      // #close() removes the model from the pool even if it rejects.
      onIdle: () => void this.#close(model, "idle").catch(() => undefined),
      start: async (self, signal) => await this.#run(self, freed, exceedsGpu, signal),
    });
    this.#models.set(alias, model);
    return model;
  }

  /** Reserves memory for a plan, or for its smaller context if another load has taken the memory meanwhile. */
  #reserve(alias: string, plan: LoadPlan): { plan: LoadPlan; freed: Promise<unknown> } {
    try {
      return { plan, freed: this.memory.reserve({ ...plan, alias }) };
    } catch (error) {
      if (!plan.smallerContextPlan) throw error;
      return this.#reserve(alias, plan.smallerContextPlan);
    }
  }

  async #run(
    model: LoadedModel,
    freed: Promise<unknown>,
    exceedsGpu: boolean,
    signal: AbortSignal,
  ): Promise<Engine> {
    const { startEngine, events } = this.#options;
    const { alias, plan } = model;
    const reserveMemory = async (spec: EngineSpec): Promise<void> =>
      await this.memory.replaceReservation(model, spec);
    try {
      await freed;
      signal.throwIfAborted();
      const spec = exceedsGpu ? (await plan.replan()).spec : plan.spec;
      if (exceedsGpu) await reserveMemory(spec);
      const engine = await startEngine(spec, {
        signal,
        alias,
        reserveMemory,
        ...(plan.heapLimitOf && { heapLimit: plan.heapLimitOf }),
      });
      try {
        await this.#options.prompts?.restore(alias, engine, signal);
      } catch (error) {
        await engine.close();
        throw error;
      }
      model.markLoaded(engine);
      const crash = this.#failures.crashes.get(alias);
      this.#failures.crashes.delete(alias);
      void engine.exited.then((exit) => this.#onExit(model, exit));
      if (crash) events.emit({ type: "engine-restarted", model: alias, reason: crash.reason });
      events.emit({ type: "model-loaded", model: alias });
      return engine;
    } catch (error) {
      this.#drop(model);
      if (signal.aborted) throw error;
      throw this.#recordFailure(alias, ServiceError.from(error));
    }
  }

  #onExit(model: LoadedModel, exit: EngineExit): void {
    if (model.state !== "loaded") return;
    const { alias, plan } = model;
    this.#drop(model);
    const reason = explainExit(exit.reason);
    const error = new ServiceError("engine_crashed", `The engine of "${alias}" ended: ${reason}.`, {
      cause: new Error(exit.reason),
    });
    this.#recordFailure(alias, error, { plan, reason });
  }

  #recordFailure(alias: string, error: ServiceError, crash?: Crash): ServiceError {
    this.#failures.add(alias, error, crash);
    reportFailure(this.#options.events, alias, error);
    return error;
  }

  async #close(model: LoadedModel, reason: UnloadReason): Promise<void> {
    const { engine } = model;
    if (!engine || model.state !== "loaded") return;
    try {
      await model.close(async () => {
        if (reason !== "deleted" && engine.alive) await this.#options.prompts?.save(model.alias, engine);
        await engine.close();
      });
    } finally {
      this.#drop(model);
    }
    const reportedReason = reason === "deleted" ? "request" : reason;
    this.#options.events.emit({ type: "model-unloaded", model: model.alias, reason: reportedReason });
  }

  #drop(model: LoadedModel): void {
    model.markGone();
    if (this.#models.get(model.alias) === model) this.#models.delete(model.alias);
  }
}

/** True if two loads request the same settings. An automatic context depends on the memory at the time of planning. */
function isSameLoad({ spec, ...one }: LoadPlan, other: LoadPlan): boolean {
  const { contextSize, sharedContext, batchSize } = other.spec;
  const isChosen = one.smallerContextPlan !== undefined || other.smallerContextPlan !== undefined;
  return isDeepStrictEqual(isChosen ? { ...spec, contextSize, sharedContext, batchSize } : spec, other.spec);
}

function shuttingDown(): ServiceError {
  return new ServiceError("shutting_down", "The daemon is shutting down.");
}
