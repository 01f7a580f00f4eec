import { isDeepStrictEqual } from "node:util";
import type { Engine, EngineExit, StartEngine } from "../../engine/engine.ts";
import { plainEnd } from "../../engine/core/failure-text.ts";
import type { EngineSpec } from "../../engine/protocol/engine-spec.ts";
import { type ContextExcess, ServiceError } from "../../errors/service-error.ts";
import { reportFailure } from "../../events/report-failure.ts";
import type { ServiceEvent, ServiceEvents } from "../../events/service-events.ts";
import type { Model } from "../model.ts";
import type { PromptCache } from "../slots/prompt-cache.ts";
import type { Clock } from "./available-memory.ts";
import { type Crash, explainExcess, Failures } from "./load-failures.ts";
import { alreadyLoaded, Lease, LoadedModel } from "./loaded-model.ts";
import type { LoadPlan } from "./load-planner.ts";
import { MemoryBudget, type MemoryBudgetOptions } from "./memory-budget.ts";

interface EnginePoolOptions extends Pick<MemoryBudgetOptions, "budget" | "machineMemory" | "gpuBudget"> {
  readonly startEngine: StartEngine;
  /** How a leased model is described. */
  readonly describe: (loaded: LoadedModel) => Model;
  /** Keeps what a model's slots have while it is not loaded; absent: nothing is kept. */
  readonly prompts?: Pick<PromptCache, "save" | "restore"> | undefined;
  readonly events: Pick<ServiceEvents, "emit">;
  readonly clock: Clock;
}

type UnloadReason = Extract<ServiceEvent, { type: "model-unloaded" }>["reason"] | "deleted";

/**
 * The models in memory, at most one per alias. Only the pool starts and closes engines. It never awaits between a
 * decision and its execution, so that two callers cannot claim the same memory or the same alias.
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
      now: () => options.clock.now(),
      evict: async (victim) => await this.#close(victim, "memory"),
    });
  }

  /** The model in memory under this alias. */
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
   * Loads a model by explicit request. Throws `model_already_loaded`, or `model_busy` while the same alias is being loaded
   * with other settings; joins a load with the same settings.
   */
  async load(alias: string, plan: LoadPlan, signal?: AbortSignal): Promise<void> {
    await this.settled(alias, signal);
    const present = this.#models.get(alias);
    if (present?.state === "loaded") {
      throw alreadyLoaded(alias);
    }
    if (present && !isSameLoad(present.plan, plan)) {
      throw new ServiceError("model_busy", `The model "${alias}" is being loaded with other settings.`);
    }
    this.#failures.forgive(alias);
    await (present ?? this.#start(alias, plan)).load.join(signal);
  }

  /** Waits until no model of this alias is being unloaded. */
  async settled(alias: string, signal?: AbortSignal): Promise<void> {
    const ending = (): Promise<unknown> | undefined => this.#models.get(alias)?.ending;
    for (let wait = ending(); wait; wait = ending()) {
      await wait;
      signal?.throwIfAborted();
    }
  }

  /** Leases a model that is already loaded. */
  tryLease(alias: string): Lease | undefined {
    const present = this.#models.get(alias);
    return present?.ready && this.#lease(present, present.ready);
  }

  /**
   * Leases a model, and loads it first if necessary: with the settings it had when its engine crashed, or else as planned.
   * Throws immediately while a failed model is backing off.
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
    // Counts as a user while waiting; otherwise the model could be evicted before it is leased.
    present.retain();
    try {
      return this.#lease(present, await present.load.join(signal));
    } finally {
      present.release();
    }
  }

  /**
   * Ends the engine; resolves when it has ended. Throws `model_already_unloaded`, or `model_busy` if the model is being
   * loaded or unloaded or, with onlyIdle, is in use.
   */
  async unload(alias: string, reason: UnloadReason, options: { onlyIdle?: boolean } = {}): Promise<void> {
    const present = this.#models.get(alias);
    if (present?.state === "loaded") {
      if (options.onlyIdle && !present.idle) {
        throw new ServiceError("model_busy", `The model "${alias}" is in use.`);
      }
      return await this.#close(present, reason);
    }
    if (present) throw new ServiceError("model_busy", `The model "${alias}" is ${present.state} now.`);
    this.#failures.forget(alias);
    throw new ServiceError("model_already_unloaded", `The model "${alias}" is not loaded.`);
  }

  /** Ends any engine under this alias, including a load in progress; resolves when there is none. */
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
    const closing = [...this.#models.keys()].map(async (alias) => await this.clear(alias, why, "shutdown"));
    await Promise.all(closing);
  }

  #lease(loaded: LoadedModel, engine: Engine): Lease {
    const { alias, plan } = loaded;
    const explain = (excess: ContextExcess): string =>
      explainExcess(excess, plan, this.memory.free(alias, plan.mayEvict));
    return new Lease(loaded, engine, this.#options.describe(loaded), explain, () => {
      // The engine served the request, so earlier failures no longer count.
      if (engine.alive) this.#failures.forgive(loaded.alias);
    });
  }

  /** Reserves memory synchronously and starts the load. */
  #start(alias: string, wished: LoadPlan): LoadedModel {
    if (this.#isClosed) throw shuttingDown();
    const { plan, freed } = this.#reserve(alias, wished);
    const candidate = { ...plan, alias };
    // Two loads planned at the same time were planned for the same free GPU memory.
    const isCrowded = this.memory.isGpuCrowded(candidate);
    const model: LoadedModel = new LoadedModel({
      alias,
      plan,
      clock: this.#options.clock,
      // The pool drops the model even when closing it fails.
      onIdle: () => void this.#close(model, "idle").catch(() => undefined),
      start: async (self, signal) => await this.#run(self, freed, isCrowded, signal),
    });
    this.#models.set(alias, model);
    return model;
  }

  /** Another load may have taken what a larger context was planned with; the model is loaded all the same. */
  #reserve(alias: string, plan: LoadPlan): { plan: LoadPlan; freed: Promise<unknown> } {
    try {
      return { plan, freed: this.memory.reserve({ ...plan, alias }) };
    } catch (error) {
      const { withLessContext } = plan;
      if (!withLessContext) throw error;
      return { plan: withLessContext, freed: this.memory.reserve({ ...withLessContext, alias }) };
    }
  }

  async #run(
    model: LoadedModel,
    freed: Promise<unknown>,
    isCrowded: boolean,
    signal: AbortSignal,
  ): Promise<Engine> {
    const { startEngine, events } = this.#options;
    const { alias, plan } = model;
    const makeRoom = async (spec: EngineSpec): Promise<void> => await this.memory.reserveInstead(model, spec);
    try {
      await freed;
      signal.throwIfAborted();
      const spec = isCrowded ? (await plan.replan()).spec : plan.spec;
      if (isCrowded) await makeRoom(spec);
      const engine = await startEngine(spec, {
        signal,
        alias,
        makeRoom,
        ...(plan.heapLimitOf && { heapLimit: plan.heapLimitOf }),
      });
      try {
        await this.#options.prompts?.restore(alias, engine, signal);
      } catch (error) {
        await engine.close();
        throw error;
      }
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
      await model.close(async () => {
        if (reason !== "deleted" && engine.alive) await this.#options.prompts?.save(model.alias, engine);
        await engine.close();
      });
    } finally {
      this.#drop(model);
    }
    const told = reason === "deleted" ? "request" : reason;
    this.#options.events.emit({ type: "model-unloaded", model: model.alias, reason: told });
  }

  #drop(model: LoadedModel): void {
    model.gone();
    if (this.#models.get(model.alias) === model) this.#models.delete(model.alias);
  }
}

/** Two loads of one model that ask for the same; how much context that gives may depend on the moment. */
function isSameLoad({ spec, ...one }: LoadPlan, other: LoadPlan): boolean {
  const { contextSize, sharedContext, batchSize } = other.spec;
  const isChosen = one.withLessContext !== undefined || other.withLessContext !== undefined;
  return isDeepStrictEqual(isChosen ? { ...spec, contextSize, sharedContext, batchSize } : spec, other.spec);
}

function shuttingDown(): ServiceError {
  return new ServiceError("shutting_down", "The daemon is shutting down.");
}
