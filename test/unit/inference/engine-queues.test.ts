import { describe, expect, test, vi } from "vitest";
import { collectAnswer } from "../../../src/inference/collect-answer.ts";
import type { GenerationEvent } from "../../../src/engine/protocol/generation.ts";
import { eventsOf } from "../../support/fake-engine.ts";
import { endless, leftOver, never, NOTHING, REQUEST, setup } from "./inference-setup.ts";

async function* events(text: string): AsyncGenerator<GenerationEvent> {
  yield* eventsOf(text);
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("a request that requires a slot", () => {
  test("waits for the request that occupies the slot, and releases the slot afterwards", async () => {
    const all = setup({ slots: 3 });
    all.engine.busySlots.add(1);
    const leave = new AbortController();
    all.engine.script = endless;
    const first = await all.inference.generate(REQUEST, leave.signal);
    const named = all.inference.generate({ ...REQUEST, slot: 1 }, never);
    await turn();
    expect(all.engine.reserved).toEqual(new Set([1]));
    expect(all.engine.requests).toHaveLength(1);
    all.engine.script = () => events("Hello");
    all.engine.busySlots.clear();
    leave.abort(new Error("enough"));
    await expect(collectAnswer(first.events)).rejects.toThrow("enough");
    await collectAnswer((await named).events);
    expect(all.engine.reserved).toEqual(new Set());
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test.each([
    ["waits for it", false],
    ["leaves as it gets it", true],
  ])("passes the slot to the next such request that %s", async (_what, leaves) => {
    const all = setup({ slots: 3 });
    const asked = vi.spyOn(all.engine, "slots");
    const actions = (): string[] => asked.mock.calls.map(([{ action }]) => action);
    const end = Promise.withResolvers<void>();
    all.engine.script = async function* () {
      yield { type: "start" };
      await end.promise;
      yield* events("Hello");
    };
    const first = await all.inference.generate({ ...REQUEST, slot: 0 }, never);
    const leave = new AbortController();
    const next = all.inference.generate({ ...REQUEST, slot: 0 }, leave.signal);
    await turn();
    expect(actions()).toEqual(["reserve"]);
    all.engine.script = () => events("Hello");
    end.resolve();
    await collectAnswer(first.events);
    if (leaves) leave.abort(new Error("enough"));
    const ended = await next.then(
      async (answer) => (await collectAnswer(answer.events)).text,
      (error: unknown) => error,
    );
    expect(ended).toEqual(leaves ? new Error("enough") : "Hello");
    expect(actions().slice(0, 2)).toEqual(["reserve", "reserve"]);
    expect(actions().filter((action) => action === "release")).toHaveLength(1);
    expect(all.engine.reserved).toEqual(new Set());
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test("releases nothing if it is refused", async () => {
    const all = setup({ slots: 2, config: { models: { queue_size: 0 } } });
    const asked = vi.spyOn(all.engine, "slots");
    all.engine.script = endless;
    const leave = new AbortController();
    const running = [
      await all.inference.generate(REQUEST, leave.signal),
      await all.inference.generate(REQUEST, leave.signal),
    ];
    const refused = all.inference.generate({ ...REQUEST, slot: 0 }, never);
    await expect(refused).rejects.toMatchObject({ code: "overloaded" });
    expect(asked).not.toHaveBeenCalled();
    leave.abort(new Error("enough"));
    for (const { events: rest } of running) await expect(collectAnswer(rest)).rejects.toThrow("enough");
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test("preempts a low-priority call in the slot", async () => {
    let isBackground = true;
    const all = setup({ slots: 3, isBackground: () => isBackground });
    all.engine.busySlots.add(1);
    all.engine.script = async function* (request, signal) {
      try {
        yield* endless(request, signal);
      } finally {
        all.engine.busySlots.clear();
      }
    };
    const line = await all.inference.generate(REQUEST, never);
    isBackground = false;
    const named = all.inference.generate({ ...REQUEST, slot: 1 }, never);
    all.engine.script = () => events("Hello");
    await expect(collectAnswer(line.events)).rejects.toMatchObject({ code: "overloaded" });
    await collectAnswer((await named).events);
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test("fails if its deadline comes before the slot is idle", async () => {
    const all = setup({ config: { engine: { request_timeout: "30ms" } } });
    all.engine.busySlots.add(0);
    await expect(all.inference.generate({ ...REQUEST, slot: 0 }, never)).rejects.toMatchObject({
      code: "deadline_exceeded",
    });
    expect(all.engine.reserved).toEqual(new Set());
    expect(leftOver(all)).toEqual(NOTHING);
  });

  test.each([
    [2, 0],
    [5, 1],
  ])("may have a slot number beyond the last slot, which wraps around: %i", async (slot, taken) => {
    const all = setup({ slots: 2 });
    all.engine.script = () => events("Hello");
    await collectAnswer((await all.inference.generate({ ...REQUEST, slot }, never)).events);
    expect(all.engine.requests).toMatchObject([{ slot: taken }]);
    expect(leftOver(all)).toEqual(NOTHING);
  });
});
