import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { DeferredStep } from "../../../../src/engine/core/warm-up.ts";
import { EngineFatalError } from "../../../../src/engine/core/wllama-session.ts";
import { IdleWarmUp } from "../../../../src/engine/host/engine-server.ts";

interface Slot {
  readonly tokens: number;
  readonly isBusy: boolean;
  readonly lastUsed: number;
}

/** Longer than the delay before idle work and all steps together. */
const LONG_MS = 1000;
const STEP_MS = 100;

let log: string[];
let slots: Slot[];
let fatal: string[];

beforeEach(() => {
  vi.useFakeTimers();
  [log, slots, fatal] = [[], [], []];
});
afterEach(() => {
  vi.useRealTimers();
});

/** A step that takes STEP_MS and can be cancelled only at its end, as on a GPU. */
function step(name: string): DeferredStep {
  return async ({ signal, slot }) => {
    log.push(slot === undefined ? name : `${name} in slot ${slot}`);
    await new Promise((resolve) => setTimeout(resolve, STEP_MS));
    signal.throwIfAborted();
    log.push(`${name} done`);
  };
}

function idle(steps: readonly DeferredStep[], sharedContext = false): IdleWarmUp {
  const engine = { slots: async () => ({ action: "list", slots }) as const };
  return new IdleWarmUp(engine, steps, { sharedContext, onFatal: (reason) => fatal.push(reason) });
}

const failing =
  (error: Error): DeferredStep =>
  async () => {
    throw error;
  };
const slotWith = (tokens: number): Slot => ({ tokens, isBusy: false, lastUsed: 1 });

describe("the idle warm-up", () => {
  it("runs its steps one after another while there are no calls", async () => {
    idle([step("a"), step("b")]).schedule();
    await vi.advanceTimersByTimeAsync(LONG_MS);
    expect(log).toEqual(["a", "a done", "b", "b done"]);
  });

  it("is interrupted by a call, and continues afterwards in an unused slot", async () => {
    const warmUp = idle([step("a"), step("b")]);
    warmUp.schedule();
    // To the start of the first step, not to its end.
    await vi.advanceTimersToNextTimerAsync();
    const entered = warmUp.callStarted().then(() => log.push("call"));
    await vi.advanceTimersByTimeAsync(LONG_MS);
    await entered;
    expect(log).toEqual(["a", "call"]);
    slots = [slotWith(40), slotWith(0)];
    warmUp.callEnded();
    await vi.advanceTimersByTimeAsync(LONG_MS);
    expect(log.slice(2)).toEqual(["a in slot 1", "a done", "b in slot 1", "b done"]);
  });

  it("does not start while a call is in flight", async () => {
    const warmUp = idle([step("a")]);
    warmUp.schedule();
    await warmUp.callStarted();
    await vi.advanceTimersByTimeAsync(LONG_MS);
    expect(log).toEqual([]);
  });

  it.each([
    ["all slots have conversations", [slotWith(40), slotWith(9)], false],
    ["slots share a context, where a prompt can evict others", [slotWith(0)], true],
  ])("is abandoned after a call if %s", async (_, found, sharedContext) => {
    const warmUp = idle([step("a")], sharedContext);
    slots = found;
    await warmUp.callStarted();
    warmUp.callEnded();
    await vi.advanceTimersByTimeAsync(LONG_MS);
    slots = [slotWith(0)];
    warmUp.schedule();
    await vi.advanceTimersByTimeAsync(LONG_MS);
    expect(log).toEqual([]);
  });

  it("is abandoned when a step fails, and reports a fatal error if the engine is lost", async () => {
    idle([failing(new Error("cannot compile")), step("b")]).schedule();
    await vi.advanceTimersByTimeAsync(LONG_MS);
    expect([log, fatal]).toEqual([[], []]);
    idle([failing(new EngineFatalError("the device is lost\nstack")), step("b")]).schedule();
    await vi.advanceTimersByTimeAsync(LONG_MS);
    expect([log, fatal]).toEqual([[], ["the device is lost"]]);
  });
});
