import { describe, expect, test } from "vitest";
import { AdmissionQueue, type Permit } from "../../../src/inference/admission-queue.ts";
import { never } from "./inference-setup.ts";
import { randomNumbers } from "../../support/random-numbers.ts";

const sharedQueue = () => new AdmissionQueue({ slots: 4, contextTokens: 100, maxWaiting: 10 });

/** Names of admitted calls, in order. */
function callers(of: AdmissionQueue) {
  const inside: string[] = [];
  const enter = async (name: string, tokens: number): Promise<Permit> => {
    const permit = await of.acquire(never, { tokens });
    inside.push(name);
    return permit;
  };
  return { inside, enter };
}

describe("a shared context", () => {
  test("lets a running call grow into free tokens before waiting calls get them", async () => {
    const shared = sharedQueue();
    const { inside, enter } = callers(shared);
    const first = await enter("first", 60);
    const waiting = enter("waiting", 50);
    expect(first.grow(30)).toBe(true);
    expect(first.grow(20)).toBe(false);
    expect(first.tokens).toBe(90);
    expect(inside).toEqual(["first"]);
    first[Symbol.dispose]();
    expect(first.grow(1)).toBe(false);
    await waiting;
    expect((await enter("last", 50)).tokens).toBe(50);
  });

  test("admits a large waiting call as soon as the calls that grew meanwhile have ended", async () => {
    const { inside, enter } = callers(sharedQueue());
    const [first, second] = [await enter("first", 30), await enter("second", 30)];
    const large = enter("large", 100);
    const later = enter("later", 10);
    for (const permit of [first, second]) while (permit.grow(5));
    first[Symbol.dispose]();
    while (second.grow(5));
    expect(second.tokens).toBe(100);
    second[Symbol.dispose]();
    (await large)[Symbol.dispose]();
    await later;
    expect(inside).toEqual(["first", "second", "large", "later"]);
  });

  test("is never over-reserved in a thousand random operations, and every call is admitted", async () => {
    const random = randomNumbers(7);
    const shared = sharedQueue();
    const running = new Set<Permit>();
    const asked: number[] = [];
    const admitted: number[] = [];
    const end = (permit: Permit): void => {
      running.delete(permit);
      permit[Symbol.dispose]();
      if (random() < 0.3) permit[Symbol.dispose]();
    };
    const settled = async (): Promise<void> => {
      while (running.size < shared.running) await Promise.resolve();
    };
    const enter = async (caller: number, tokens: number): Promise<void> => {
      running.add(await shared.acquire(never, { tokens }));
      admitted.push(caller);
    };
    let refusals = 0;
    const step = (): void => {
      const [permit] = [...running].slice(Math.floor(random() * running.size));
      if (!permit) return;
      const dice = random();
      if (dice < 0.6) refusals += permit.grow(Math.ceil(random() * 20)) ? 0 : 1;
      else if (dice < 0.8) permit.resize(Math.floor(random() * permit.tokens));
      else end(permit);
    };
    for (let round = 0; round < 1000; round += 1) {
      if (random() < 0.3 && shared.waiting < 10) {
        const caller = asked.push(round);
        void enter(caller, Math.ceil(random() * 100));
      } else step();
      await settled();
      const held = [...running].reduce((sum, { tokens }) => sum + tokens, 0);
      expect(held).toBeLessThanOrEqual(100);
    }
    while (shared.running > 0) {
      for (const permit of running) end(permit);
      await settled();
    }
    expect(refusals).toBeGreaterThan(0);
    expect(shared.waiting).toBe(0);
    expect(admitted).toEqual(asked.map((_, index) => index + 1));
    expect((await shared.acquire(never, { tokens: 100 })).tokens).toBe(100);
  });
});
