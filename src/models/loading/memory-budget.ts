import type { EngineSpec } from "../../engine/protocol/engine-spec.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { currentAllowance, inMiB, type Allowance, type MachineMemory } from "./available-memory.ts";
import type { LoadedModel } from "./loaded-model.ts";
import type { MemoryNeeds } from "./load-planner.ts";

/** Requests usually take some seconds; after that a model is idle. */
const RETRY_AFTER_SECS = 5;

/** What a load in the background may push out has not been used for so long: whoever used it last may come back. */
const UNUSED_MS = 60_000;

/** Whether idle models may be unloaded for another one; unused: those that have not been used for a while. */
export type Eviction = boolean | "unused";

export interface MemoryBudgetOptions {
  /** Memory that the configuration gives all engines together. */
  readonly budget: Allowance;
  /** What the machine has at the moment; absent: nothing but the budget counts. */
  readonly machineMemory?: (() => MachineMemory) | undefined;
  /** Bytes of GPU memory that all engines together may use; Infinity while the total is unknown. */
  readonly gpuBudget: () => number;
  /** All models that are loaded, being loaded, or being unloaded. */
  readonly models: () => readonly LoadedModel[];
  /** As in {@link LoadedModel.lastUsed}. */
  readonly now: () => number;
  /** Ends an engine; settles when it is gone. */
  readonly evict: (victim: LoadedModel) => Promise<void>;
}

/** A model to be loaded, with its memory needs. */
interface Candidate extends MemoryNeeds {
  readonly alias: string;
  /** Whether idle models may be unloaded for it. */
  readonly mayEvict: Eviction;
}

/** Tracks how much of the machine's and the GPU's memory each model has. */
export class MemoryBudget {
  readonly #options: MemoryBudgetOptions;

  constructor(options: MemoryBudgetOptions) {
    this.#options = options;
  }

  /**
   * Decides synchronously, and evicts others if that is needed and allowed. The caller has to record its model's needs
   * before awaiting anything. The returned promise settles when the memory is free.
   * @throws ServiceError insufficient_memory when the candidate cannot fit, overloaded when it only cannot fit now
   */
  reserve(candidate: Candidate): Promise<unknown> {
    const { models, evict } = this.#options;
    const evictions = this.#chooseVictims(candidate).map(evict);
    // Memory that is being freed already counts as free, so wait for it.
    return Promise.all([...evictions, ...models().map(({ closed }) => closed)]);
  }

  /**
   * The same for an engine that is started differently than planned; settles when the memory is free.
   * @throws ServiceError insufficient_memory or overloaded
   */
  async reserveInstead(model: LoadedModel, spec: EngineSpec): Promise<void> {
    const { alias, plan } = model;
    const needs = plan.needsOf(spec);
    const freed = this.reserve({ ...plan, ...needs, alias });
    model.needs = needs;
    await freed;
  }

  /**
   * Bytes of GPU memory that a candidate has to leave to others.
   * @param mayEvict idle engines may be evicted
   */
  takenOnGpu(alias: string, mayEvict: Eviction): number {
    return this.#others(alias)
      .filter((other) => !this.#isEvictable(other, mayEvict))
      .reduce((sum, { needs }) => sum + needs.gpuBytes, 0);
  }

  /**
   * Bytes that engines may use at the moment, less what others have reserved.
   * @param mayEvict idle engines may be evicted
   */
  free(alias: string, mayEvict: Eviction): number {
    return this.#others(alias)
      .filter((other) => !this.#isEvictable(other, mayEvict))
      .reduce((left, { needs }) => left - needs.bytes, this.#allowed().bytes);
  }

  /** Whether others have reserved the GPU memory that a load was planned with. */
  isGpuCrowded({ alias, gpuBytes, mayEvict }: Candidate): boolean {
    return gpuBytes > 0 && gpuBytes > this.#options.gpuBudget() - this.takenOnGpu(alias, mayEvict);
  }

  /**
   * What all engines together may use at the moment.
   * @param subject how to call the model in a message
   * @throws ServiceError insufficient_memory for a model that needs more, even if it is the only one
   */
  check(subject: string, bytes: number): Allowance {
    const allowed = this.#allowed();
    if (bytes <= allowed.bytes) return allowed;
    throw new ServiceError(
      "insufficient_memory",
      `${subject} needs about ${inMiB(bytes)}: ${allowed.reason}. A smaller context or a smaller quantization may fit.`,
    );
  }

  #allowed(): Allowance {
    const { budget, machineMemory, models } = this.#options;
    const reserved = models().reduce((sum, { needs }) => sum + needs.bytes, 0);
    return currentAllowance(budget, machineMemory?.(), reserved);
  }

  /**
   * The least recently used idle models, as few as possible in that order. A GPU that is still too full is not an error
   * here: an engine can run with fewer layers on it.
   */
  #chooseVictims({ alias, bytes, gpuBytes, mayEvict }: Candidate): LoadedModel[] {
    const { gpuBudget } = this.#options;
    const subject = `The model ${alias}`;
    const allowed = this.check(subject, bytes);
    const others = this.#others(alias);
    let free = allowed.bytes - others.reduce((sum, { needs }) => sum + needs.bytes, 0);
    let gpuFree = gpuBudget() - this.takenOnGpu(alias, false);
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
    const message = `${subject} needs about ${inMiB(bytes)}, and only ${inMiB(Math.max(0, free))} of ${inMiB(allowed.bytes)} are free: ${allowed.reason}`;
    if (!mayEvict) {
      throw new ServiceError("insufficient_memory", `${message}; unload another model first.`);
    }
    throw new ServiceError("overloaded", `${message}, and the other models are in use.`, {
      retryAfterSecs: RETRY_AFTER_SECS,
    });
  }

  #isEvictable({ idle, lastUsed }: LoadedModel, mayEvict: Eviction): boolean {
    if (mayEvict === "unused") return idle && this.#options.now() - lastUsed >= UNUSED_MS;
    return mayEvict && idle;
  }

  #others(alias: string): readonly LoadedModel[] {
    return this.#options.models().filter((other) => other.alias !== alias && other.state !== "unloading");
  }
}
