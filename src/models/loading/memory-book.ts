import type { EngineSpec } from "../../engine/protocol/engine-spec.ts";
import { engineRoom, type EngineRoom, type ReadMachineMemory } from "./engine-room.ts";
import type { EngineSlot } from "./engine-slot.ts";
import type { MemoryNeeds } from "./load-request.ts";
import { makeRoom } from "./make-room.ts";

export interface MemoryBookOptions {
  /** What the configuration gives all engines together. */
  readonly budget: EngineRoom;
  /** What the machine has at the moment; absent: nothing but the budget counts. */
  readonly machineMemory?: ReadMachineMemory | undefined;
  /** The same of the GPU's memory; Infinity while nobody knows how much it has. */
  readonly gpuBudget: () => number;
  /** All engines that run, are being loaded, or are ending. */
  readonly slots: () => readonly EngineSlot[];
  /** Ends an engine; settles when it is gone. */
  readonly evict: (alias: string) => Promise<void>;
}

/** Who has how much of the machine's memory and of the GPU's. */
export class MemoryBook {
  readonly #options: MemoryBookOptions;

  constructor(options: MemoryBookOptions) {
    this.#options = options;
  }

  /**
   * Unloads others where that is needed and allowed. The decision has been taken when it returns, so that the caller
   * can book the memory at once; what it returns settles when the memory is free.
   * @throws ServiceError insufficient_memory or overloaded, at once
   */
  makeRoom(alias: string, { bytes, gpuBytes }: MemoryNeeds, mayEvict: boolean): Promise<unknown> {
    const { budget, machineMemory, gpuBudget, slots, evict } = this.#options;
    const residents = this.#others(alias).map(({ alias: other, needs, idle, lastUsed }) => ({
      alias: other,
      bytes: needs.bytes,
      gpuBytes: needs.gpuBytes,
      idle,
      lastUsed,
    }));
    const booked = slots().reduce((sum, { needs }) => sum + needs.bytes, 0);
    const room = engineRoom(budget, machineMemory?.(), booked);
    const newcomer = { alias, bytes, gpuBytes, mayEvict };
    const victims = makeRoom(newcomer, residents, { ...room, gpuBytes: gpuBudget() });
    const evictions = victims.map(evict);
    // Memory that is being freed for others counts as free already, so it has to be waited for.
    const unloading = slots().map((slot) => slot.closed);
    return Promise.all([...evictions, ...unloading]);
  }

  /**
   * Books what an engine needs that is started otherwise than was planned; settles when the memory is free.
   * @throws ServiceError insufficient_memory or overloaded
   */
  async rebook(slot: EngineSlot, spec: EngineSpec): Promise<void> {
    const { alias, request } = slot;
    const needs = request.needsOf(spec);
    const freed = this.makeRoom(alias, needs, request.mayEvict);
    slot.needs = needs;
    await freed;
  }

  /**
   * Bytes of the GPU that a newcomer has to leave to others.
   * @param mayEvict what idle engines have can be had
   */
  takenOnGpu(alias: string, mayEvict: boolean): number {
    return this.#others(alias)
      .filter(({ idle }) => !(mayEvict && idle))
      .reduce((sum, { needs }) => sum + needs.gpuBytes, 0);
  }

  /** Others have booked what a load was planned to take of the GPU. */
  isCrowded(alias: string, { gpuBytes }: MemoryNeeds, mayEvict: boolean): boolean {
    return gpuBytes > 0 && gpuBytes > this.#options.gpuBudget() - this.takenOnGpu(alias, mayEvict);
  }

  #others(alias: string): readonly EngineSlot[] {
    return this.#options.slots().filter((slot) => slot.alias !== alias && slot.state !== "unloading");
  }
}
