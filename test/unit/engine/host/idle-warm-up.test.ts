import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { LaterStep } from "../../../../src/engine/core/warm-up.ts";
import { EngineFatalError } from "../../../../src/engine/core/wllama-session.ts";
import { IdleWarmUp } from "../../../../src/engine/host/idle-warm-up.ts";

interface Slot {
  readonly tokens: number;
  readonly isBusy: boolean;
  readonly lastUsed: number;
}

/** Longer than calls are waited for, and than a step takes here. */
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

/** A step that takes a while, and is cancelled at its end as on a GPU. */
function step(name: string): LaterStep {
  return async ({ signal, slot }) => {
    log.push(slot === undefined ? name : `${name} in slot ${slot}`);
    await new Promise((resolve) => setTimeout(resolve, STEP_MS));
    signal.throwIfAborted();
    log.push(`${name} done`);
  };
}

function idle(steps: readonly LaterStep[], sharedContext = false): IdleWarmUp {
  const engine = { slots: async () => ({ action: "list", slots }) as const };
  return new IdleWarmUp(engine, steps, { sharedContext, onFatal: (reason) => fatal.push(reason) });
}

const refuse =
  (error: Error): LaterStep =>
  async () => {
    throw error;
  };
const holding = (tokens: number): Slot => ({ tokens, isBusy: false, lastUsed: 1 });

describe("the rest of the warm-up", () => {
  it("is done while there are no calls, step by step", async () => {
    idle([step("a"), step("b")]).begin();
    await vi.advanceTimersByTimeAsync(LONG_MS);
    expect(log).toEqual(["a", "a done", "b", "b done"]);
  });

  it("lets a call that comes meanwhile go first, and goes on afterwards where no conversation is", async () => {
    const rest = idle([step("a"), step("b")]);
    rest.begin();
    // To the first step, and not to its end.
    await vi.advanceTimersToNextTimerAsync();
    const entered = rest.enter().then(() => log.push("call"));
    await vi.advanceTimersByTimeAsync(LONG_MS);
    await entered;
    expect(log).toEqual(["a", "call"]);
    slots = [holding(40), holding(0)];
    rest.leave();
    await vi.advanceTimersByTimeAsync(LONG_MS);
    expect(log.slice(2)).toEqual(["a in slot 1", "a done", "b in slot 1", "b done"]);
  });

  it("does not begin while a call is in flight", async () => {
    const rest = idle([step("a")]);
    rest.begin();
    await rest.enter();
    await vi.advanceTimersByTimeAsync(LONG_MS);
    expect(log).toEqual([]);
  });

  it.each([
    ["all slots have conversations", [holding(40), holding(9)], false],
    ["slots share a context, where a prompt can empty others", [holding(0)], true],
  ])("is given up when %s", async (_, found, sharedContext) => {
    const rest = idle([step("a")], sharedContext);
    slots = found;
    await rest.enter();
    rest.leave();
    await vi.advanceTimersByTimeAsync(LONG_MS);
    slots = [holding(0)];
    rest.begin();
    await vi.advanceTimersByTimeAsync(LONG_MS);
    expect(log).toEqual([]);
  });

  it("is given up when the driver refuses a program, and says so when the engine is lost", async () => {
    idle([refuse(new Error("refused")), step("b")]).begin();
    await vi.advanceTimersByTimeAsync(LONG_MS);
    expect([log, fatal]).toEqual([[], []]);
    idle([refuse(new EngineFatalError("the device is lost\nstack")), step("b")]).begin();
    await vi.advanceTimersByTimeAsync(LONG_MS);
    expect([log, fatal]).toEqual([[], ["the device is lost"]]);
  });
});
