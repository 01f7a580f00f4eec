import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { RequestQueue } from "../../../src/fleet/wait-queue.ts";

const never = new AbortController().signal;

/** Free slots that attempts take. */
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

describe("queued requests", () => {
  test("begin in the order of arrival, as many as there are slots", async () => {
    const slots = new Slots();
    const line = new RequestQueue(10);
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

  test("begin before later requests, even if slots are free", async () => {
    const slots = new Slots();
    const line = new RequestQueue(10);
    const first = line.run(slots.take("a"), never);
    await turn();
    slots.free = 2;
    const second = line.run(slots.take("b"), never);
    line.wake();
    await Promise.all([first, second]);
    expect(slots.taken).toEqual(["a", "b"]);
  });

  test("begin after answers that must continue", async () => {
    const slots = new Slots();
    const line = new RequestQueue(0);
    const begun = line.run(slots.take("begun"), never, { isFirst: true });
    await turn();
    slots.free = 1;
    line.wake();
    await expect(begun).resolves.toEqual({ name: "begun" });
  });

  test("are refused when the queue is full", async () => {
    const line = new RequestQueue(1);
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

  test("leave when their client disconnects, also during an attempt", async () => {
    const line = new RequestQueue(1);
    const stop = new AbortController();
    const attempt = Promise.withResolvers<undefined>();
    const waiting = line.run(() => attempt.promise, stop.signal);
    stop.abort(new Error("left"));
    attempt.resolve(undefined);
    await expect(waiting).rejects.toThrow("left");
  });

  test("keep the queue in use during their first attempt", async () => {
    const line = new RequestQueue(1);
    const attempt = Promise.withResolvers<object | undefined>();
    const waiting = line.run(() => attempt.promise, never);
    expect({ waiting: line.length, isUsed: line.isUsed }).toEqual({ waiting: 0, isUsed: true });
    attempt.resolve({});
    await waiting;
  });

  test("do not wait for an earlier one that begins slowly", async () => {
    const line = new RequestQueue(10);
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
