import { abortable } from "../async/abortable.ts";
import { backgroundTimer } from "../async/watchdog.ts";
import type { Engine } from "../engine/engine.ts";
import { EngineSlots } from "../engine/engine-slots.ts";
import type { Permit } from "./admission-queue.ts";

/** Longest wait before an engine is asked again: a call that was cancelled may keep its slot longer than its permit. */
const ASK_AGAIN_MS = 1000;

/**
 * The slot that a request names. Other requests do not get it while this one waits for it, or has it. The admission queue
 * lets in one request for each slot.
 */
export class NamedSlot implements Disposable {
  readonly #slots: EngineSlots;
  readonly #slot: number;

  constructor(engine: Pick<Engine, "slots" | "info" | "spec">, slot: number) {
    this.#slots = new EngineSlots(engine);
    this.#slot = slot;
  }

  /** Resolves when no other request has the slot. */
  async wait(permit: Pick<Permit, "makeWay" | "nextRelease">, signal: AbortSignal): Promise<void> {
    for (;;) {
      const released = permit.nextRelease();
      if (!(await this.#slots.reserve(this.#slot, signal))) return;
      permit.makeWay();
      await abortable(Promise.race([released, pause(ASK_AGAIN_MS)]), signal);
    }
  }

  /** Lets others have the slot. An engine that has ended has none. */
  [Symbol.dispose](): void {
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
