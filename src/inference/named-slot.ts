import { abortable } from "../async/abortable.ts";
import { backgroundTimer } from "../async/watchdog.ts";
import type { Engine } from "../engine/engine.ts";
import { EngineSlots } from "../engine/engine-slots.ts";
import type { AdmissionQueue, Permit } from "./admission-queue.ts";

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
