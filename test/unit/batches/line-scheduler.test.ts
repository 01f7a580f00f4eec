import { afterEach, describe, expect, test, vi } from "vitest";
import { LineQueue } from "../../../src/batches/line-queue.ts";
import { LinePool, type LineSource, LineTurns } from "../../../src/batches/line-scheduler.ts";

const LINES = 1000;

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

describe("line pool", () => {
  afterEach(() => void vi.restoreAllMocks());

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
});

interface TestBatch {
  readonly owner: string;
  readonly name: string;
  lines: number;
}

class Turns {
  readonly #turns = new LineTurns<TestBatch>();
  /** Whose lines were begun, in order. */
  readonly begun: TestBatch[] = [];

  add(name: string, owner: string, lines = Number.POSITIVE_INFINITY): TestBatch {
    const batch = { name, owner, lines };
    this.#turns.add(batch);
    return batch;
  }

  begin(lines: number): void {
    for (let line = 0; line < lines; line += 1) {
      const next = [...this.#turns.order()].find((batch) => batch.lines > 0);
      if (!next) return;
      this.#turns.took(next);
      this.begun.push(next);
      next.lines -= 1;
      if (next.lines === 0) this.#turns.delete(next);
    }
  }

  /** Runs of lines of one batch: its name, and how many. */
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

test("batches of one owner take turns of 32 lines", () => {
  const turns = new Turns();
  for (const name of ["a", "b", "c"]) turns.add(name, "");
  turns.begin(24);
  turns.begun.length = 0;
  turns.begin(160);
  expect(
    turns
      .runs()
      .map(([, lines]) => lines)
      .slice(1, 5),
  ).toEqual([32, 32, 32, 32]);
  expect(new Set(turns.runs().map(([name]) => name))).toEqual(new Set(["a", "b", "c"]));
});

test.each([0, 10, 10_000])("a small batch begins beside 200 others that have had %i lines", (had) => {
  const turns = new Turns();
  for (let at = 0; at < 200; at += 1) turns.add(`old-${at}`, "");
  turns.begin(had);
  turns.begun.length = 0;
  const small = turns.add("small", "", 3);
  turns.begin(100);
  expect(turns.begun.indexOf(small)).toBeLessThanOrEqual(16);
  expect(small.lines).toBe(0);
});

test("a batch goes on, however many new ones come", () => {
  const turns = new Turns();
  const old = turns.add("old", "");
  for (let at = 0; at < 200; at += 1) {
    turns.add(`new-${at}`, "", 20);
    turns.begin(20);
  }
  const its = turns.begun.filter((batch) => batch === old).length;
  expect(its).toBeGreaterThan(24);
  // New ones wait for each other; somebody else does not wait for them.
  const other = turns.add("other", "b");
  turns.begun.length = 0;
  turns.begin(1000);
  expect(turns.begun.filter((batch) => batch === other).length).toBeGreaterThan(400);
});

test("owners get as much each, however many batches they have", () => {
  const turns = new Turns();
  for (let at = 0; at < 50; at += 1) turns.add(`a-${at}`, "a");
  turns.add("b", "b");
  turns.begin(6400);
  const part = turns.begun.filter(({ owner }) => owner === "b").length / turns.begun.length;
  expect(part).toBeGreaterThan(0.4);
  expect(part).toBeLessThan(0.6);
});
