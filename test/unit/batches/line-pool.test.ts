import { afterEach, expect, test, vi } from "vitest";
import { LinePool, type LineSource } from "../../../src/batches/line-pool.ts";
import { LineQueue } from "../../../src/batches/line-queue.ts";

const LINES = 1000;

afterEach(() => void vi.restoreAllMocks());

/** A batch of lines that take a turn of the event loop each. */
function batchOf(lines: number, onLine: () => void): LineSource {
  const waiting = Array.from({ length: lines }, (_, index) => ({
    number: index + 1,
    customId: `line-${index}`,
    model: "tiny",
    order: "",
    start: 0,
    length: 0,
  }));
  const waitingLines = async (_id: string, after: { number: number } | undefined, most: number) =>
    waiting.slice(after?.number ?? 0, (after?.number ?? 0) + most);
  return {
    owner: "",
    queue: new LineQueue({ waitingLines }, "batch"),
    signal: new AbortController().signal,
    run: async () => {
      await new Promise((resolve) => setImmediate(resolve));
      onLine();
      return undefined;
    },
  };
}

test("a batch of many lines leaves nothing behind with every line", async () => {
  // Whatever waits for a promise, in a race too, is kept until the promise settles.
  const race = vi.spyOn(Promise, "race");
  let done = 0;
  await new LinePool(4).run(batchOf(LINES, () => void (done += 1)));
  const waiters = new Map<unknown, number>();
  for (const [promises] of race.mock.calls)
    for (const each of promises) waiters.set(each, (waiters.get(each) ?? 0) + 1);
  expect(done).toBe(LINES);
  expect(Math.max(0, ...waiters.values())).toBeLessThan(20);
});

test("a line that comes back is run again beside one that takes long", async () => {
  const long = Promise.withResolvers<undefined>();
  const ran: number[] = [];
  const source: LineSource = {
    ...batchOf(2, () => undefined),
    run: async ({ line }) => {
      ran.push(line.number);
      if (line.number === 1) return await long.promise;
      return ran.length > 2 ? undefined : { at: Date.now() + 50, holdsUpAll: false };
    },
  };
  const over = new LinePool(4).run(source);
  await expect.poll(() => ran).toEqual([1, 2, 2]);
  long.resolve(undefined);
  await over;
});

test("what fails a batch is told when none of its lines is being run", async () => {
  const long = Promise.withResolvers<undefined>();
  let isTold = false;
  const source: LineSource = {
    ...batchOf(2, () => undefined),
    run: async ({ line }) => {
      if (line.number === 1) return await long.promise;
      throw new Error("no disk");
    },
  };
  const over = new LinePool(4).run(source).catch((error: unknown) => {
    isTold = true;
    return error;
  });
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(isTold).toBe(false);
  long.resolve(undefined);
  expect(await over).toMatchObject({ message: "no disk" });
});

test("a line that is taken while its batch is stopped is not run", async () => {
  const stop = new AbortController();
  const ran: string[] = [];
  const stopped = batchOf(3, () => ran.push("stopped"));
  const { queue } = stopped;
  const take = queue.take.bind(queue);
  vi.spyOn(queue, "take").mockImplementation(async (...args) => {
    const attempt = await take(...args);
    stop.abort();
    return attempt;
  });
  const pool = new LinePool(2);
  await Promise.all([
    pool.run({ ...stopped, signal: stop.signal }),
    pool.run(batchOf(3, () => ran.push("other"))),
  ]);
  expect(ran).toEqual(["other", "other", "other"]);
});
