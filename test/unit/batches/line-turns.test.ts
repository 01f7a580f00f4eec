import { expect, test } from "vitest";
import { LineTurns } from "../../../src/batches/line-turns.ts";

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
