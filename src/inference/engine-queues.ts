import { abortable } from "../async/promises.ts";
import { backgroundTimer } from "../async/timers.ts";
import { plainEnd } from "../engine/core/failure-text.ts";
import { EngineSlots } from "../engine/engine-slots.ts";
import type { Engine } from "../engine/engine.ts";
import { ServiceError } from "../errors/service-error.ts";
import { AdmissionQueue, type AdmissionRequest, type Permit } from "./admission-queue.ts";

/** What the engine of a model has to do. */
export interface ModelLoad {
  readonly model: string;
  /** Calls that have a slot. */
  readonly running: number;
  /** Of these, the ones in the background: they end when others need their slots. */
  readonly yielding: number;
  /** Calls that wait for one. */
  readonly waiting: number;
  /** Tokens of the KV cache, and the part of it, from 0 to 1, that running calls hold. */
  readonly contextTokens: number;
  readonly contextUsage: number;
}

/** One admission queue per running engine; it ends with its engine. */
export class EngineQueues {
  readonly #queues = new Map<Engine, { readonly alias: string; readonly queue: AdmissionQueue }>();
  readonly #maxWaiting: number;
  readonly #now: () => number;

  constructor(options: { maxWaiting: number; now: () => number }) {
    this.#maxWaiting = options.maxWaiting;
    this.#now = options.now;
  }

  /** @param alias name for the error of callers that wait when the engine ends */
  of(engine: Engine, alias: string): AdmissionQueue {
    const known = this.#queues.get(engine);
    if (known) return known.queue;
    const queue = new AdmissionQueue({
      slots: engine.spec.slots,
      contextTokens: engine.info.contextTokens,
      maxWaiting: this.#maxWaiting,
      now: this.#now,
    });
    this.#queues.set(engine, { alias, queue });
    void this.#endWith(engine, queue, alias);
    return queue;
  }

  async #endWith(engine: Engine, queue: AdmissionQueue, alias: string): Promise<void> {
    const { expected, reason } = await engine.exited;
    this.#queues.delete(engine);
    queue.close(() => exitError(alias, expected, reason));
  }

  /** Of the engines that have been called. */
  get loads(): readonly ModelLoad[] {
    return [...this.#queues].map(([{ info }, { alias, queue }]) => ({
      model: alias,
      running: queue.running,
      yielding: queue.yielding,
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
        `The engine of "${alias}" ended while the request waited (${plainEnd(reason)}); the next request starts it again.`,
      );
}

interface Preemption extends Pick<AdmissionRequest, "onYield"> {
  /** Aborts with the client, or when the request has to give way. */
  readonly signal: AbortSignal;
}

/** Lets a request in the background end when another one needs its slot; its client may send it again. */
export function preemptionOf(client: AbortSignal, isBackground: boolean): Preemption {
  if (!isBackground) return { signal: client };
  const yielded = new AbortController();
  return {
    signal: AbortSignal.any([client, yielded.signal]),
    onYield: () =>
      yielded.abort(
        new ServiceError("overloaded", "A request that is not in the background needs the slot."),
      ),
  };
}

/** Longest wait before an engine is asked again: a call that was cancelled may keep its slot longer than its permit. */
const ASK_AGAIN_MS = 1000;

/**
 * The slot that a request names. Once the request has its permit, others do not get the slot. The admission queue lets in one
 * request for each slot; when the next one is let in as this one's permit is released, the slot stays kept for it: a request
 * that takes any slot would otherwise get this one in between. Dispose it after the permit, also where none was got.
 */
export class NamedSlot implements Disposable {
  readonly #slots: EngineSlots;
  readonly #slot: number;
  readonly #queue: Pick<AdmissionQueue, "isNamed">;
  #isLetIn = false;

  constructor(
    engine: Pick<Engine, "slots" | "info" | "spec">,
    slot: number,
    queue: Pick<AdmissionQueue, "isNamed">,
  ) {
    this.#slots = new EngineSlots(engine);
    this.#slot = slot;
    this.#queue = queue;
  }

  /** Resolves when no other request has the slot; to be called as soon as there is a permit. */
  async wait(permit: Pick<Permit, "makeWay" | "nextRelease">, signal: AbortSignal): Promise<void> {
    this.#isLetIn = true;
    for (;;) {
      const released = permit.nextRelease();
      if (!(await this.#slots.reserve(this.#slot, signal))) return;
      permit.makeWay();
      await abortable(Promise.race([released, pause(ASK_AGAIN_MS)]), signal);
    }
  }

  /** Lets others have the slot, unless the next request that names it has been let in. An engine that has ended has none. */
  [Symbol.dispose](): void {
    if (!this.#isLetIn || this.#queue.isNamed(this.#slot)) return;
    this.#slots.release(this.#slot, new AbortController().signal).catch(() => undefined);
  }
}

/** The slot of a model with so many that a number stands for: editors number their requests without end, as llama.cpp's server has it. */
export function slotWithin(slot: number | undefined, slots: number): number | undefined {
  return slot === undefined ? undefined : slot % slots;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    backgroundTimer(resolve, ms);
  });
}
