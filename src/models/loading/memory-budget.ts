import { formatMebibytes } from "../../json/quantities.ts";
import type { EngineSpec } from "../../engine/protocol/engine-spec.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { EngineMemory } from "../models-options.ts";
import { currentAllowance, type MemoryAllowance } from "./available-memory.ts";
import type { LoadedModel } from "./loaded-model.ts";
import type { EvictionPolicy, MemoryNeeds } from "./load-planner.ts";

/** Typical time of a request, after which a model may be idle and evictable. */
const RETRY_AFTER_SECS = 5;

/** Idle time after which a low-priority load may evict a model, because its last user may soon send more requests. */
const UNUSED_MS = 60_000;

export interface MemoryBudgetOptions {
  readonly budget: MemoryAllowance;
  readonly memory: Pick<EngineMemory, "gpuBudget" | "machine">;
  /** All models that are loaded, being loaded, or being unloaded. */
  readonly models: () => readonly LoadedModel[];
  /** Current time on the clock of {@link LoadedModel.lastUsed}. */
  readonly now: () => number;
  /** Unloads a model; settles when its engine has ended. */
  readonly evict: (victim: LoadedModel) => Promise<void>;
}

interface LoadCandidate extends MemoryNeeds {
  readonly alias: string;
  readonly mayEvict: EvictionPolicy;
}

/** Tracks the reservations of models in the machine's and the GPU's memory. */
export class MemoryBudget {
  readonly #options: MemoryBudgetOptions;

  constructor(options: MemoryBudgetOptions) {
    this.#options = options;
  }

  /**
   * Decides synchronously, and evicts other models if that is needed and allowed. The caller has to record its model's
   * needs before it awaits anything. The returned promise settles when the memory is free.
   * @throws ServiceError insufficient_memory if the model cannot fit, overloaded if it cannot fit at the moment
   */
  reserve(candidate: LoadCandidate): Promise<unknown> {
    const { models, evict } = this.#options;
    const evictions = this.#chooseVictims(candidate).map(evict);
    // Memory of models that are being unloaded already counts as free, so the caller has to wait for them.
    return Promise.all([...evictions, ...models().map(({ closed }) => closed)]);
  }

  /**
   * Replaces the reservation of a model whose engine needs another specification than planned; settles when the memory
   * is free.
   * @throws ServiceError insufficient_memory or overloaded
   */
  async replaceReservation(model: LoadedModel, spec: EngineSpec): Promise<void> {
    const { alias, plan } = model;
    const needs = plan.needsOf(spec);
    const freed = this.reserve({ ...plan, ...needs, alias });
    model.needs = needs;
    await freed;
  }

  /** Returns the bytes of GPU memory reserved by other models that may not be evicted. */
  takenOnGpu(alias: string, mayEvict: EvictionPolicy): number {
    return this.#others(alias)
      .filter((other) => !this.#isEvictable(other, mayEvict))
      .reduce((sum, { needs }) => sum + needs.gpuBytes, 0);
  }

  /** Returns the bytes for engines at the moment, minus the reservations of other models that may not be evicted. */
  free(alias: string, mayEvict: EvictionPolicy): number {
    return this.#others(alias)
      .filter((other) => !this.#isEvictable(other, mayEvict))
      .reduce((left, { needs }) => left - needs.bytes, this.#allowed().bytes);
  }

  /** True if other models have reserved the GPU memory that a load was planned for. */
  exceedsFreeGpu({ alias, gpuBytes, mayEvict }: LoadCandidate): boolean {
    return gpuBytes > 0 && gpuBytes > this.#options.memory.gpuBudget() - this.takenOnGpu(alias, mayEvict);
  }

  /**
   * Checks that a model would fit if it were loaded alone; returns the memory for all engines at the moment.
   * @throws ServiceError insufficient_memory
   */
  check(subject: string, bytes: number): MemoryAllowance {
    const allowed = this.#allowed();
    if (bytes <= allowed.bytes) return allowed;
    throw new ServiceError(
      "insufficient_memory",
      `${subject} needs about ${formatMebibytes(bytes)}: ${allowed.reason}. A smaller context or a smaller quantization may fit.`,
    );
  }

  #allowed(): MemoryAllowance {
    const { budget, memory, models } = this.#options;
    const reserved = models().reduce((sum, { needs }) => sum + needs.bytes, 0);
    return currentAllowance(budget, memory.machine?.(), reserved);
  }

  /**
   * Chooses the least recently used idle models, as few as possible in that order. Too little GPU memory is no error:
   * an engine can run with fewer layers on the GPU.
   */
  #chooseVictims({ alias, bytes, gpuBytes, mayEvict }: LoadCandidate): LoadedModel[] {
    const subject = `The model ${alias}`;
    const allowed = this.check(subject, bytes);
    const others = this.#others(alias);
    let free = allowed.bytes - others.reduce((sum, { needs }) => sum + needs.bytes, 0);
    let gpuFree = this.#options.memory.gpuBudget() - this.takenOnGpu(alias, false);
    const victims: LoadedModel[] = [];
    const idle = others.filter((other) => this.#isEvictable(other, mayEvict));
    for (const other of idle.toSorted((a, b) => a.lastUsed - b.lastUsed)) {
      const helps = bytes > free || (gpuBytes > gpuFree && other.needs.gpuBytes > 0);
      if (!helps) continue;
      free += other.needs.bytes;
      gpuFree += other.needs.gpuBytes;
      victims.push(other);
    }
    if (bytes <= free) return victims;
    const message = `${subject} needs about ${formatMebibytes(bytes)}, and only ${formatMebibytes(Math.max(0, free))} of ${formatMebibytes(allowed.bytes)} are free: ${allowed.reason}`;
    if (!mayEvict) {
      throw new ServiceError("insufficient_memory", `${message}; unload another model first.`);
    }
    throw new ServiceError("overloaded", `${message}, and the other models are in use.`, {
      retryAfterSecs: RETRY_AFTER_SECS,
    });
  }

  #isEvictable({ isIdle, lastUsed }: LoadedModel, mayEvict: EvictionPolicy): boolean {
    if (mayEvict === "unused") return isIdle && this.#options.now() - lastUsed >= UNUSED_MS;
    return mayEvict && isIdle;
  }

  #others(alias: string): readonly LoadedModel[] {
    return this.#options.models().filter((other) => other.alias !== alias && other.state !== "unloading");
  }
}
