import { afterEach, describe, expect, test, vi } from "vitest";
import { LineQueue } from "../../../src/batches/line-queue.ts";
import { LineScheduler, type BatchLines, BatchRotation } from "../../../src/batches/line-scheduler.ts";

const LINES = 1000;

/** Batch whose lines take a tick each. */
function batchOf(lines: number, onLine: () => void): BatchLines {
  const waiting = Array.from({ length: lines }, (_, index) => ({
    number: index + 1,
    customId: `line-${index}`,
    model: "tiny",
    sortKey: "",
    start: 0,
    length: 0,
  }));
  const pendingLines = async (_id: string, after: { number: number } | undefined, most: number) =>
    waiting.slice(after?.number ?? 0, (after?.number ?? 0) + most);
  return {
    owner: "",
    queue: new LineQueue({ pendingLines }, "batch"),
    signal: new AbortController().signal,
    run: async () => {
      await new Promise((resolve) => setImmediate(resolve));
      onLine();
      return undefined;
    },
  };
}

describe("line scheduler", () => {
  afterEach(() => void vi.restoreAllMocks());

  test("a batch of many lines leaves no promise handlers behind with each line", async () => {
    // Each waiter on a promise is retained until the promise settles, also in a race.
    const race = vi.spyOn(Promise, "race");
    let done = 0;
    await new LineScheduler(4).run(batchOf(LINES, () => void (done += 1)));
    const waiters = new Map<unknown, number>();
    for (const [promises] of race.mock.calls)
      for (const each of promises) waiters.set(each, (waiters.get(each) ?? 0) + 1);
    expect(done).toBe(LINES);
    expect(Math.max(0, ...waiters.values())).toBeLessThan(20);
  });

  test("a line that was put back runs again beside a slow one", async () => {
    const long = Promise.withResolvers<undefined>();
    const ran: number[] = [];
    const source: BatchLines = {
      ...batchOf(2, () => undefined),
      run: async ({ line }) => {
        ran.push(line.number);
        if (line.number === 1) return await long.promise;
        return ran.length > 2 ? undefined : { at: Date.now() + 50, blocksAll: false };
      },
    };
    const over = new LineScheduler(4).run(source);
    await expect.poll(() => ran).toEqual([1, 2, 2]);
    long.resolve(undefined);
    await over;
  });

  test("an error of a batch is reported when none of its lines is running", async () => {
    const long = Promise.withResolvers<undefined>();
    let isReported = false;
    const source: BatchLines = {
      ...batchOf(2, () => undefined),
      run: async ({ line }) => {
        if (line.number === 1) return await long.promise;
        throw new Error("no disk");
      },
    };
    const over = new LineScheduler(4).run(source).catch((error: unknown) => {
      isReported = true;
      return error;
    });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(isReported).toBe(false);
    long.resolve(undefined);
    expect(await over).toMatchObject({ message: "no disk" });
  });

  test("a line that is taken while its batch is stopped does not run", async () => {
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
    const pool = new LineScheduler(2);
    await Promise.all([
      pool.run({ ...stopped, signal: stop.signal }),
      pool.run(batchOf(3, () => ran.push("other"))),
    ]);
    expect(ran).toEqual(["other", "other", "other"]);
  });
});

interface TestBatch {
  readonly owner: string;
  readonly name: string;
  lines: number;
}

class RotationRecord {
  readonly #rotation = new BatchRotation<TestBatch>();
  /** Batches whose lines were started, in order. */
  readonly begun: TestBatch[] = [];

  add(name: string, owner: string, lines = Number.POSITIVE_INFINITY): TestBatch {
    const batch = { name, owner, lines };
    this.#rotation.add(batch);
    return batch;
  }

  begin(lines: number): void {
    for (let line = 0; line < lines; line += 1) {
      const next = [...this.#rotation.order()].find((batch) => batch.lines > 0);
      if (!next) return;
      this.#rotation.served(next);
      this.begun.push(next);
      next.lines -= 1;
      if (next.lines === 0) this.#rotation.delete(next);
    }
  }

  /** Names of successive batches, with their numbers of successive lines. */
  runs(): [string, number][] {
    const runs: [string, number][] = [];
    for (const { name } of this.begun) {
      const last = runs.at(-1);
      if (last?.[0] === name) last[1] += 1;
      else runs.push([name, 1]);
    }
    return runs;
  }
}

test("batches of one owner alternate in turns of 32 lines", () => {
  const rotation = new RotationRecord();
  for (const name of ["a", "b", "c"]) rotation.add(name, "");
  rotation.begin(24);
  rotation.begun.length = 0;
  rotation.begin(160);
  expect(
    rotation
      .runs()
      .map(([, lines]) => lines)
      .slice(1, 5),
  ).toEqual([32, 32, 32, 32]);
  expect(new Set(rotation.runs().map(([name]) => name))).toEqual(new Set(["a", "b", "c"]));
});

test.each([0, 10, 10_000])("a small batch begins beside 200 others that have had %i lines", (had) => {
  const rotation = new RotationRecord();
  for (let at = 0; at < 200; at += 1) rotation.add(`old-${at}`, "");
  rotation.begin(had);
  rotation.begun.length = 0;
  const small = rotation.add("small", "", 3);
  rotation.begin(100);
  expect(rotation.begun.indexOf(small)).toBeLessThanOrEqual(16);
  expect(small.lines).toBe(0);
});

test("a batch continues, however many new ones come", () => {
  const rotation = new RotationRecord();
  const old = rotation.add("old", "");
  for (let at = 0; at < 200; at += 1) {
    rotation.add(`new-${at}`, "", 20);
    rotation.begin(20);
  }
  const its = rotation.begun.filter((batch) => batch === old).length;
  expect(its).toBeGreaterThan(24);
  // New batches wait for each other; batches of other owners do not wait for them.
  const other = rotation.add("other", "b");
  rotation.begun.length = 0;
  rotation.begin(1000);
  expect(rotation.begun.filter((batch) => batch === other).length).toBeGreaterThan(400);
});

test("owners get equal shares, however many batches they have", () => {
  const rotation = new RotationRecord();
  for (let at = 0; at < 50; at += 1) rotation.add(`a-${at}`, "a");
  rotation.add("b", "b");
  rotation.begin(6400);
  const part = rotation.begun.filter(({ owner }) => owner === "b").length / rotation.begun.length;
  expect(part).toBeGreaterThan(0.4);
  expect(part).toBeLessThan(0.6);
});
