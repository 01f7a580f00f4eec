import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { WaitingLine } from "../../../src/fleet/wait-queue.ts";

const never = new AbortController().signal;

/** Machines with slots, which attempts take. */
class Slots {
  free = 0;
  readonly taken: string[] = [];

  take(name: string): () => Promise<{ name: string } | undefined> {
    return async () => {
      if (this.free === 0) return undefined;
      this.free -= 1;
      this.taken.push(name);
      return { name };
    };
  }
}

describe("requests that wait for a machine", () => {
  test("begin in the order of their arrival, as many as there is room for", async () => {
    const slots = new Slots();
    const line = new WaitingLine(10);
    const all = ["a", "b", "c"].map((name) => line.run(slots.take(name), never));
    await turn();
    slots.free = 2;
    line.wake();
    await Promise.all(all.slice(0, 2));
    expect(slots.taken).toEqual(["a", "b"]);
    expect(line.length).toBe(1);
    slots.free = 1;
    line.wake();
    await all[2];
    expect({ waiting: line.length, isUsed: line.isUsed }).toEqual({ waiting: 0, isUsed: false });
  });

  test("come after those that wait already, also when there is room", async () => {
    const slots = new Slots();
    const line = new WaitingLine(10);
    const first = line.run(slots.take("a"), never);
    await turn();
    slots.free = 2;
    const second = line.run(slots.take("b"), never);
    line.wake();
    await Promise.all([first, second]);
    expect(slots.taken).toEqual(["a", "b"]);
  });

  test("come after answers that have begun", async () => {
    const slots = new Slots();
    const line = new WaitingLine(0);
    const begun = line.run(slots.take("begun"), never, { isFirst: true });
    await turn();
    slots.free = 1;
    line.wake();
    await expect(begun).resolves.toEqual({ name: "begun" });
  });

  test("are refused when too many wait", async () => {
    const line = new WaitingLine(1);
    const stop = new AbortController();
    const first = line.run(new Slots().take("a"), stop.signal);
    await turn();
    await expect(line.run(new Slots().take("b"), never)).rejects.toMatchObject({
      code: "overloaded",
      retryAfterSecs: 5,
    });
    stop.abort(new Error("left"));
    await expect(first).rejects.toThrow("left");
    expect(line.length).toBe(0);
  });

  test("leave at once with their client, also during an attempt", async () => {
    const line = new WaitingLine(1);
    const stop = new AbortController();
    const attempt = Promise.withResolvers<undefined>();
    const waiting = line.run(() => attempt.promise, stop.signal);
    stop.abort(new Error("left"));
    attempt.resolve(undefined);
    await expect(waiting).rejects.toThrow("left");
  });

  test("are not forgotten while their first attempt lasts", async () => {
    const line = new WaitingLine(1);
    const attempt = Promise.withResolvers<object | undefined>();
    const waiting = line.run(() => attempt.promise, never);
    expect({ waiting: line.length, isUsed: line.isUsed }).toEqual({ waiting: 0, isUsed: true });
    attempt.resolve({});
    await waiting;
  });

  test("do not wait for one that takes long to begin", async () => {
    const line = new WaitingLine(10);
    const slow = Promise.withResolvers<object>();
    let isOpen = false;
    const first = line.run(async () => (isOpen ? await slow.promise : undefined), never);
    const second = line.run(async () => (isOpen ? {} : undefined), never);
    await turn();
    isOpen = true;
    line.wake();
    await second;
    slow.resolve({});
    await first;
    expect(line.length).toBe(0);
  });
});
