import { describe, expect, test } from "vitest";
import { ServiceError } from "../../../src/errors/service-error.ts";
import { AdmissionQueue, type Slot } from "../../../src/inference/admission-queue.ts";
import { randomSource } from "./random-pieces.ts";

const never = new AbortController().signal;

describe("admission queue", () => {
  test("lets callers in up to its slots and the others in the order they came", async () => {
    const queue = new AdmissionQueue({ slots: 1, maxWaiting: 10 });
    const order: string[] = [];
    const first = await queue.acquire(never);
    const waiting = ["b", "c", "d"].map(async (name) => {
      const slot = await queue.acquire(never);
      order.push(name);
      slot[Symbol.dispose]();
    });
    expect(queue.running).toBe(1);
    expect(queue.waiting).toBe(3);
    first[Symbol.dispose]();
    await Promise.all(waiting);
    expect(order).toEqual(["b", "c", "d"]);
    expect(queue.running).toBe(0);
  });

  test("refuses the caller for whom there is no room to wait", async () => {
    const queue = new AdmissionQueue({ slots: 1, maxWaiting: 1 });
    await queue.acquire(never);
    void queue.acquire(never);
    const refusal = queue.acquire(never);
    await expect(refusal).rejects.toMatchObject({ code: "overloaded", status: 503 });
    await expect(refusal).rejects.toSatisfy((error: ServiceError) => error.retryAfterSecs! >= 1);
  });

  test("estimates the wait from how long slots were held", async () => {
    let now = 0;
    const queue = new AdmissionQueue({ slots: 1, maxWaiting: 0, now: () => now });
    const before = queue.retryAfterSecs;
    const slot = await queue.acquire(never);
    now = 60_000;
    slot[Symbol.dispose]();
    expect(queue.retryAfterSecs).toBeGreaterThan(before);
  });

  test("a further call of an admitted batch waits even when the queue is full", async () => {
    const queue = new AdmissionQueue({ slots: 1, maxWaiting: 0 });
    const slot = await queue.acquire(never);
    const further = queue.acquire(never, { admitted: true });
    expect(queue.waiting).toBe(1);
    slot[Symbol.dispose]();
    (await further)[Symbol.dispose]();
    expect(queue.running).toBe(0);
  });

  test("a caller that goes away leaves the queue", async () => {
    const queue = new AdmissionQueue({ slots: 1, maxWaiting: 1 });
    const slot = await queue.acquire(never);
    const client = new AbortController();
    const gone = queue.acquire(client.signal);
    client.abort(new Error("gone"));
    await expect(gone).rejects.toThrow("gone");
    expect(queue.waiting).toBe(0);
    const next = queue.acquire(never);
    slot[Symbol.dispose]();
    (await next)[Symbol.dispose]();
    await expect(queue.acquire(client.signal)).rejects.toThrow("gone");
  });

  test("a slot disposed twice is freed once", async () => {
    const queue = new AdmissionQueue({ slots: 2, maxWaiting: 0 });
    const slot = await queue.acquire(never);
    await queue.acquire(never);
    slot[Symbol.dispose]();
    slot[Symbol.dispose]();
    expect(queue.running).toBe(1);
  });

  test("closing refuses those who wait and those who come", async () => {
    const queue = new AdmissionQueue({ slots: 1, maxWaiting: 5 });
    const slot = await queue.acquire(never);
    const waiting = queue.acquire(never);
    queue.close(() => new ServiceError("engine_crashed", "It is gone."));
    await expect(waiting).rejects.toMatchObject({ code: "engine_crashed" });
    await expect(queue.acquire(never)).rejects.toMatchObject({ code: "engine_crashed" });
    slot[Symbol.dispose]();
    expect(queue.running).toBe(0);
  });

  test("keeps its bounds and leaks nothing over a thousand random operations", async () => {
    const random = randomSource(42);
    const queue = new AdmissionQueue({ slots: 3, maxWaiting: 5 });
    const slots: Slot[] = [];
    const pending = new Map<AbortController, Promise<void>>();
    let refused = 0;
    for (let step = 0; step < 1000; step += 1) {
      const dice = random();
      if (dice < 0.5) {
        const client = new AbortController();
        const done = queue
          .acquire(client.signal)
          .then((slot) => void slots.push(slot))
          .catch((error: unknown) => {
            if (error instanceof ServiceError) refused += 1;
          })
          .finally(() => pending.delete(client));
        pending.set(client, done);
      } else if (dice < 0.8) {
        const slot = slots.splice(Math.floor(random() * slots.length), 1)[0];
        slot?.[Symbol.dispose]();
        if (random() < 0.2) slot?.[Symbol.dispose]();
      } else {
        const [client] = [...pending.keys()].slice(Math.floor(random() * pending.size));
        client?.abort(new Error("gone"));
      }
      if (random() < 0.7) await Promise.resolve();
      expect(queue.running).toBeLessThanOrEqual(3);
      expect(queue.waiting).toBeLessThanOrEqual(5);
      expect(queue.running === 3 || queue.waiting === 0).toBe(true);
    }
    for (const client of pending.keys()) client.abort(new Error("gone"));
    await Promise.all(pending.values());
    for (const slot of slots) slot[Symbol.dispose]();
    expect(refused).toBeGreaterThan(0);
    expect([queue.running, queue.waiting]).toEqual([0, 0]);
  });
});
