import { describe, expect, test } from "vitest";
import { ServiceError } from "../../../src/errors/service-error.ts";
import { AdmissionQueue, type Permit } from "../../../src/inference/admission-queue.ts";
import { randomNumbers } from "../../support/random-numbers.ts";

const never = new AbortController().signal;

describe("admission queue", () => {
  test("admits calls up to its slots, and the others in order of arrival", async () => {
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

  test("runs calls of one group in parallel, and another group only after them", async () => {
    const queue = new AdmissionQueue({ slots: 3, maxWaiting: 10 });
    const order: string[] = [];
    const held = new Map<string, Permit>();
    const ask = async (name: string, group: string): Promise<void> => {
      held.set(name, await queue.acquire(never, { group }));
      order.push(name);
    };
    const done = ["a1", "a2", "b1", "b2", "a3"].map((name) => ask(name, name[0]!));
    await Promise.all(done.slice(0, 2));
    expect(order).toEqual(["a1", "a2"]);
    held.get("a1")?.[Symbol.dispose]();
    expect(queue.running).toBe(1);
    held.get("a2")?.[Symbol.dispose]();
    await Promise.all(done.slice(2, 4));
    // A slot was free, but the call would have overtaken calls that had waited longer.
    expect(order).toEqual(["a1", "a2", "b1", "b2"]);
    held.get("b1")?.[Symbol.dispose]();
    held.get("b2")?.[Symbol.dispose]();
    await Promise.all(done);
    expect(held.get("a3")?.group).toBe("a");
  });

  test("preempts only the low-priority call in the slot that a waiting call requires", async () => {
    const queue = new AdmissionQueue({ slots: 4, maxWaiting: 10 });
    const asked: number[] = [];
    const held: Permit[] = [];
    for (const slot of [0, 1, 2])
      held.push(await queue.acquire(never, { slot, onPreempt: () => asked.push(slot) }));
    const named = queue.acquire(never, { slot: 1 });
    expect(asked).toEqual([1]);
    held[1]?.[Symbol.dispose]();
    await named;
    expect(asked).toEqual([1]);
  });

  test("admits calls that require one slot one by one, and lets other calls pass those that wait for it", async () => {
    const queue = new AdmissionQueue({ slots: 3, maxWaiting: 10 });
    const order: string[] = [];
    const held = new Map<string, Permit>();
    const ask = async (name: string, slot?: number): Promise<void> => {
      held.set(name, await queue.acquire(never, { slot }));
      order.push(name);
    };
    const asked = [ask("a", 0), ask("b", 0), ask("c", 0), ask("d"), ask("e", 1), ask("f")];
    await Promise.all([asked[0], asked[3], asked[4]]);
    expect(order).toEqual(["a", "d", "e"]);
    const released = held.get("a")?.nextRelease();
    held.get("a")?.[Symbol.dispose]();
    await Promise.all([released, asked[1]]);
    held.get("b")?.[Symbol.dispose]();
    await asked[2];
    held.get("d")?.[Symbol.dispose]();
    await asked[5];
    expect(order).toEqual(["a", "d", "e", "b", "c", "f"]);
  });

  test("refuses a call beyond the queue limit", async () => {
    const queue = new AdmissionQueue({ slots: 1, maxWaiting: 1 });
    await queue.acquire(never);
    void queue.acquire(never);
    const refusal = queue.acquire(never);
    await expect(refusal).rejects.toMatchObject({ code: "overloaded", status: 503 });
    await expect(refusal).rejects.toSatisfy((error: ServiceError) => error.retryAfterSecs! >= 1);
  });

  test("estimates Retry-After from the duration of earlier calls", async () => {
    let now = 0;
    const queue = new AdmissionQueue({ slots: 1, maxWaiting: 0, now: () => now });
    const before = queue.retryAfterSecs;
    const slot = await queue.acquire(never);
    now = 60_000;
    slot[Symbol.dispose]();
    expect(queue.retryAfterSecs).toBeGreaterThan(before);
  });

  test("lets another call of an admitted batch wait even if the queue is full", async () => {
    const queue = new AdmissionQueue({ slots: 1, maxWaiting: 0 });
    const slot = await queue.acquire(never);
    const further = queue.acquire(never, { bypassQueueLimit: true });
    expect(queue.waiting).toBe(1);
    slot[Symbol.dispose]();
    (await further)[Symbol.dispose]();
    expect(queue.running).toBe(0);
  });

  test("removes an aborted call from the queue", async () => {
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

  test("frees a slot once if its permit is disposed twice", async () => {
    const queue = new AdmissionQueue({ slots: 2, maxWaiting: 0 });
    const slot = await queue.acquire(never);
    await queue.acquire(never);
    slot[Symbol.dispose]();
    slot[Symbol.dispose]();
    expect(queue.running).toBe(1);
  });

  test("refuses waiting and later calls once closed", async () => {
    const queue = new AdmissionQueue({ slots: 1, maxWaiting: 5 });
    const slot = await queue.acquire(never);
    const waiting = queue.acquire(never);
    queue.close(() => new ServiceError("engine_crashed", "It is gone."));
    await expect(waiting).rejects.toMatchObject({ code: "engine_crashed" });
    await expect(queue.acquire(never)).rejects.toMatchObject({ code: "engine_crashed" });
    slot[Symbol.dispose]();
    expect(queue.running).toBe(0);
  });

  test("stays within its limits and leaks no slot over a thousand random operations", async () => {
    const random = randomNumbers(42);
    const queue = new AdmissionQueue({ slots: 3, maxWaiting: 5 });
    const slots: Permit[] = [];
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

const sharedQueue = () => new AdmissionQueue({ slots: 4, contextTokens: 100, maxWaiting: 10 });
/** Names of admitted calls, in order. */
function callers(of: AdmissionQueue) {
  const inside: string[] = [];
  const enter = async (name: string, tokens: number, signal = never): Promise<Permit> => {
    const slot = await of.acquire(signal, { tokens });
    inside.push(name);
    return slot;
  };
  return { inside, enter };
}

test("calls never wait for context if each slot has its own", async () => {
  const queue = new AdmissionQueue({ slots: 4, contextTokens: 400, maxWaiting: 0 });
  for (let index = 0; index < 4; index++) await queue.acquire(never, { tokens: 100 });
  expect([queue.running, queue.waiting]).toEqual([4, 0]);
});

describe("a shared context", () => {
  test("admits calls that fit together, and others when enough tokens are free", async () => {
    const shared = sharedQueue();
    const { inside, enter } = callers(shared);
    const first = await enter("first", 60);
    await enter("second", 40);
    const third = enter("third", 1);
    expect(shared.waiting).toBe(1);
    expect(inside).toEqual(["first", "second"]);
    first[Symbol.dispose]();
    await third;
    expect(inside).toEqual(["first", "second", "third"]);
  });

  test("reserves all of it for a call that requests more than it has", async () => {
    const shared = sharedQueue();
    const { enter } = callers(shared);
    const greedy = await enter("greedy", 1000);
    const next = enter("next", 100);
    expect(shared.waiting).toBe(1);
    greedy[Symbol.dispose]();
    await next;
  });

  test("does not let small calls overtake a large one forever", async () => {
    const { inside, enter } = callers(sharedQueue());
    const first = await enter("first", 50);
    const large = enter("large", 100);
    const small = enter("small", 1);
    first[Symbol.dispose]();
    (await large)[Symbol.dispose]();
    await small;
    expect(inside).toEqual(["first", "large", "small"]);
  });

  test("admits the next call when a running one is resized downward", async () => {
    const { inside, enter } = callers(sharedQueue());
    const first = await enter("first", 100);
    const second = enter("second", 60);
    first.resize(40);
    await second;
    expect(inside).toEqual(["first", "second"]);
  });

  test("admits the calls behind one that was aborted", async () => {
    const { inside, enter } = callers(sharedQueue());
    await enter("first", 60);
    const client = new AbortController();
    const large = enter("large", 100, client.signal);
    const small = enter("small", 40);
    client.abort(new Error("gone"));
    await expect(large).rejects.toThrow("gone");
    await small;
    expect(inside).toEqual(["first", "small"]);
  });

  test("has no reserved tokens left in the end", async () => {
    const shared = sharedQueue();
    const { enter } = callers(shared);
    const slot = await enter("one", 70);
    slot.resize(90);
    slot[Symbol.dispose]();
    slot.resize(100);
    slot[Symbol.dispose]();
    await enter("all", 100);
    expect(shared.running).toBe(1);
  });
});

/** Acquires a permit as a low-priority call, and records if it is preempted. */
async function background(
  queue: AdmissionQueue,
  tokens = 0,
): Promise<{ permit: Permit; asked: () => boolean }> {
  let isAsked = false;
  const permit = await queue.acquire(never, { tokens, onPreempt: () => (isAsked = true) });
  return { permit, asked: () => isAsked };
}

describe("low-priority calls", () => {
  test("wait behind all others, and are not subject to the queue limit", async () => {
    const queue = new AdmissionQueue({ slots: 1, maxWaiting: 1 });
    const first = await queue.acquire(never);
    const order: string[] = [];
    const ask = async (name: string, onPreempt?: () => void): Promise<void> => {
      const permit = await queue.acquire(never, { onPreempt });
      order.push(name);
      permit[Symbol.dispose]();
    };
    const done = [ask("behind", () => undefined), ask("behind too", () => undefined), ask("before")];
    expect(queue.waiting).toBe(1);
    first[Symbol.dispose]();
    await Promise.all(done);
    expect(order).toEqual(["before", "behind", "behind too"]);
  });

  test("are preempted newest first, and no more of them than there are waiting calls", async () => {
    const queue = new AdmissionQueue({ slots: 3, maxWaiting: 10 });
    const held = [await background(queue), await background(queue), await background(queue)];
    const asked = (): boolean[] => held.map((each) => each.asked());
    const waiting = [queue.acquire(never)];
    expect(asked()).toEqual([false, false, true]);
    waiting.push(queue.acquire(never));
    expect(asked()).toEqual([false, true, true]);
    held[2]?.permit[Symbol.dispose]();
    await waiting[0];
    expect(asked()).toEqual([false, true, true]);
    held[1]?.permit[Symbol.dispose]();
    await Promise.all(waiting);
    expect(asked()).toEqual([false, true, true]);
  });

  test("are preempted until a long prompt fits", async () => {
    const queue = new AdmissionQueue({ slots: 4, contextTokens: 100, maxWaiting: 10 });
    const held = [await background(queue, 40), await background(queue, 40)];
    const long = queue.acquire(never, { tokens: 90 });
    expect(held.map((each) => each.asked())).toEqual([false, true]);
    held[1]?.permit[Symbol.dispose]();
    expect(held[0]?.asked()).toBe(true);
    held[0]?.permit[Symbol.dispose]();
    expect((await long).tokens).toBe(90);
  });

  test("are preempted for an answer that grows", async () => {
    const queue = new AdmissionQueue({ slots: 4, contextTokens: 100, maxWaiting: 10 });
    const answer = await queue.acquire(never, { tokens: 50 });
    const { permit, asked } = await background(queue, 50);
    expect(answer.grow(10)).toBe(false);
    expect(asked()).toBe(true);
    permit[Symbol.dispose]();
    expect(answer.grow(10)).toBe(true);
  });

  test("are preempted for a call that may not wait, unless another call waits already", async () => {
    const queue = new AdmissionQueue({ slots: 1, maxWaiting: 10 });
    const { permit, asked } = await background(queue);
    const call = queue.acquire(never, { mayWait: false });
    expect(asked()).toBe(true);
    await expect(queue.acquire(never, { mayWait: false })).rejects.toMatchObject({ code: "overloaded" });
    permit[Symbol.dispose]();
    await call;
    expect(queue.lowPriority).toBe(0);
  });

  test("preempt no other call", async () => {
    const queue = new AdmissionQueue({ slots: 1, contextTokens: 10, maxWaiting: 10 });
    const { asked, permit } = await background(queue, 10);
    void queue.acquire(never, { onPreempt: () => undefined });
    expect(permit.grow(5)).toBe(false);
    expect(asked()).toBe(false);
  });
});
