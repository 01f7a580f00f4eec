import { abortable } from "../async/promises.ts";
import { unrefTimer } from "../async/timers.ts";
import { explainExit } from "../engine/core/failure-text.ts";
import { EngineSlots } from "../engine/engine-slots.ts";
import type { Engine } from "../engine/engine.ts";
import { ServiceError } from "../errors/service-error.ts";
import { AdmissionQueue, type AdmissionRequest, type Permit } from "./admission-queue.ts";

/** Load of a model's engine. */
export interface ModelLoad {
  readonly model: string;
  /** Calls in a slot. */
  readonly running: number;
  /** Low-priority calls among the running ones, which end when others need their slots. */
  readonly lowPriority: number;
  /** Calls waiting for a slot, without low-priority ones. */
  readonly waiting: number;
  /** Tokens of the KV cache, and the part of it, from 0 to 1, that running calls have reserved. */
  readonly contextTokens: number;
  readonly contextUsage: number;
}

/** Admission queues of the running engines, one each; a queue ends with its engine. */
export class EngineQueues {
  readonly #queues = new Map<Engine, { readonly alias: string; readonly queue: AdmissionQueue }>();
  readonly #maxWaiting: number;
  readonly #now: () => number;

  constructor(options: { maxWaiting: number; now: () => number }) {
    this.#maxWaiting = options.maxWaiting;
    this.#now = options.now;
  }

  /** @param alias name of the model, for the error of calls that wait when the engine exits */
  queueFor(engine: Engine, alias: string): AdmissionQueue {
    const known = this.#queues.get(engine);
    if (known) return known.queue;
    const queue = new AdmissionQueue({
      slots: engine.spec.slots,
      contextTokens: engine.info.contextTokens,
      maxWaiting: this.#maxWaiting,
      now: this.#now,
    });
    this.#queues.set(engine, { alias, queue });
    void this.#closeAtExit(engine, queue, alias);
    return queue;
  }

  async #closeAtExit(engine: Engine, queue: AdmissionQueue, alias: string): Promise<void> {
    const { expected, reason } = await engine.exited;
    this.#queues.delete(engine);
    queue.close(() => exitError(alias, expected, reason));
  }

  /** Loads of all engines that have been used. */
  get loads(): readonly ModelLoad[] {
    return [...this.#queues].map(([{ info }, { alias, queue }]) => ({
      model: alias,
      running: queue.running,
      lowPriority: queue.lowPriority,
      waiting: queue.waiting,
      contextTokens: info.contextTokens,
      contextUsage: queue.contextUsage,
    }));
  }
}

function exitError(alias: string, expected: boolean, reason: string): ServiceError {
  return expected
    ? new ServiceError("model_not_loaded", `The model "${alias}" was unloaded while the request waited.`)
    : new ServiceError(
        "engine_crashed",
        `The engine of "${alias}" ended while the request waited (${explainExit(reason)}); the next request starts it again.`,
      );
}

interface Preemption extends Pick<AdmissionRequest, "onPreempt"> {
  /** Aborts with the client, or when the request is preempted. */
  readonly signal: AbortSignal;
}

/** Makes a low-priority request end when another one needs its slot; its client may retry it. */
export function preemptionFor(client: AbortSignal, isLowPriority: boolean): Preemption {
  if (!isLowPriority) return { signal: client };
  const yielded = new AbortController();
  return {
    signal: AbortSignal.any([client, yielded.signal]),
    onPreempt: () =>
      yielded.abort(new ServiceError("overloaded", "A request of higher priority needs the slot.")),
  };
}

/** Longest wait before a slot is requested again: a cancelled call may occupy its slot longer than its permit. */
const RETRY_INTERVAL_MS = 1000;

/**
 * Reservation of the slot that a request requires. From the time that the request is admitted, llama.cpp assigns the
 * slot to no other request. The admission queue admits one request per required slot. If the next one is admitted as
 * soon as this one's permit is released, the reservation passes to it; a request without a required slot might
 * otherwise get the slot in between. Dispose it after the permit, even if no permit was acquired.
 */
export class ReservedSlot implements Disposable {
  readonly #slots: EngineSlots;
  readonly #slot: number;
  readonly #queue: Pick<AdmissionQueue, "isSlotTaken">;
  #isAdmitted = false;

  constructor(
    engine: Pick<Engine, "slots" | "info" | "spec">,
    slot: number,
    queue: Pick<AdmissionQueue, "isSlotTaken">,
  ) {
    this.#slots = new EngineSlots(engine);
    this.#slot = slot;
    this.#queue = queue;
  }

  /** Resolves when no other request occupies the slot. Call it as soon as there is a permit. */
  async wait(permit: Pick<Permit, "preemptOne" | "nextRelease">, signal: AbortSignal): Promise<void> {
    this.#isAdmitted = true;
    for (;;) {
      const released = permit.nextRelease();
      if (!(await this.#slots.reserve(this.#slot, signal))) return;
      permit.preemptOne();
      await abortable(Promise.race([released, pause(RETRY_INTERVAL_MS)]), signal);
    }
  }

  /**
   * Releases the slot, unless the next request that requires it has been admitted. Fails silently if the engine has
   * exited.
   */
  [Symbol.dispose](): void {
    if (!this.#isAdmitted || this.#queue.isSlotTaken(this.#slot)) return;
    this.#slots.release(this.#slot, new AbortController().signal).catch(() => undefined);
  }
}

/**
 * Maps any slot number to one of the model's slots, like llama.cpp's server, because editors number slots without
 * limit.
 */
export function wrapSlot(slot: number | undefined, slots: number): number | undefined {
  return slot === undefined ? undefined : slot % slots;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    unrefTimer(resolve, ms);
  });
}
