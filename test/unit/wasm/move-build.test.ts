import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, it, test } from "vitest";
import { findFacts, type FoundFacts } from "../../../scripts/wasm/find-facts.ts";
import { FunctionFinder } from "../../../scripts/wasm/find-functions.ts";
import { findNumber } from "../../../scripts/wasm/find-numbers.ts";
import { factsHeader, factsModule, PINNED_FACTS } from "../../../scripts/wasm/print-facts.ts";
import {
  installedFolder,
  readPackage,
  stockModule,
  type StockModule,
} from "../../../scripts/wasm/stock-module.ts";
import { uleb } from "../../../wasm/linker/byte-writer.ts";
import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";
import { namedModule } from "./named-module.ts";

const committed = (file: string): string =>
  readFileSync(new URL(`../../../wasm/${file}`, import.meta.url), "utf8");

describe("the installed build of llama.cpp", () => {
  let found: FoundFacts;
  beforeAll(async () => {
    const installed = await readPackage(installedFolder());
    found = findFacts(PINNED_FACTS, installed, installed);
  });

  it("is the one in the committed file, byte for byte", () => {
    expect(found.findings.filter(({ state }) => state !== "same")).toEqual([]);
    expect(factsModule(found.facts)).toBe(committed("llama-cpp-build.ts"));
  });

  it("has each function under its name in the package's symbol map", async () => {
    const { names } = await readPackage(installedFolder());
    const named = Object.values(PINNED_FACTS.functions).map((index) => names[index]);
    expect(named).toEqual(Object.keys(PINNED_FACTS.functions));
  });

  it("has the same constants in the kernels' header", () => {
    expect(factsHeader(PINNED_FACTS, MEMORY_CELLS)).toBe(committed("kernels/llama-cpp-build.h"));
  });
});

test("the kernels' memory cells do not overlap, and are below llama.cpp's data", () => {
  const cells = Object.values(MEMORY_CELLS);
  const words = cells.map((address) => Math.floor(address / 4));
  expect(new Set(words).size).toBe(cells.length);
  expect(Math.max(...cells)).toBeLessThan(1024 - 4);
});

/** i64.const, i64.load offset=…, drop */
const load = (address: number, offset: number): number[] => [
  0x42,
  ...signed(address),
  0x29,
  3,
  ...uleb(offset),
  0x1a,
];
/** Unique code: additions and subtractions in an order that no other function has. */
const mark = (order: number): number[] =>
  Array.from({ length: 12 }, (_, bit) => [0x20, 0, 0x41, 1, (order >> bit) & 1 ? 0x6a : 0x6b, 0x1a]).flat();

const named = (functions: readonly (readonly [string, readonly number[]])[]): Promise<StockModule> =>
  stockModule(namedModule(functions), "", { version: "1.0.0", llamaCpp: "b1" });

describe("another build of llama.cpp", () => {
  const ADDRESS = 70_000;
  const before = {
    other: mark(0b0101_0101_0101),
    wanted: [...mark(0b1100_1010_0111), ...load(ADDRESS, 24), ...mark(0b0001_1100_0110)],
    twin: mark(0b1010_0000_1111),
  };
  const moved = [...mark(0b1100_1010_0111), ...load(ADDRESS + 512, 32), ...mark(0b0001_1100_0110)];
  const WANTED = 1;

  async function finderFor(
    after: readonly (readonly [string, readonly number[]])[],
  ): Promise<FunctionFinder> {
    return new FunctionFinder(await named(Object.entries(before)), await named(after));
  }
  it("has a moved function that is found by its name", async () => {
    const finder = await finderFor([
      ["new", mark(1)],
      ["other", before.other],
      ["newer", mark(2)],
      ["wanted", moved],
    ]);
    expect(finder.find(WANTED)).toEqual({ index: 3, by: "name", similarity: 1 });
  });

  it("has a moved function that is found by its bytes", async () => {
    const finder = await finderFor([
      ["a", mark(1)],
      ["b", before.other],
      ["c", before.wanted],
    ]);
    expect(finder.find(WANTED)).toEqual({ index: 2, by: "bytes", similarity: 1 });
  });

  it("has a changed and renamed function that is found by similarity", async () => {
    const changed = [...moved, ...load(ADDRESS, 8)];
    const finder = await finderFor([
      ["a", mark(1)],
      ["b", before.other],
      ["c", changed],
    ]);
    expect(finder.find(WANTED)).toMatchObject({ index: 2, by: "likeness" });
    expect(finder.find(WANTED)!.similarity).toBeLessThan(1);
  });

  it("has several functions of one name, of which the one with the same code is found", async () => {
    const finder = await finderFor([
      ["wanted", mark(1)],
      ["wanted", moved],
      ["wanted", mark(2)],
    ]);
    expect(finder.find(WANTED)).toEqual({ index: 1, by: "likeness", similarity: 1 });
  });

  it("lacks a function if none is similar, or two are equally similar", async () => {
    expect((await finderFor([["a", mark(1)]])).find(WANTED)).toBeUndefined();
    const twins = await finderFor([
      ["a", moved],
      ["b", moved],
    ]);
    expect(twins.find(WANTED)).toBeUndefined();
  });

  it("has moved data and fields that are found through code", async () => {
    const finder = await finderFor([
      ["new", mark(1)],
      ["wanted", moved],
    ]);
    expect(findNumber(finder, [WANTED], ADDRESS, ["constant"])).toMatchObject({
      value: ADDRESS + 512,
      votes: 1,
    });
    expect(findNumber(finder, [WANTED], 24, ["offset"])).toMatchObject({ value: 32, votes: 1, against: 0 });
    expect(findNumber(finder, [WANTED], 999, ["offset"])).toMatchObject({ value: undefined, of: 0 });
  });

  it("has data without code references that is found through equally moved neighbors", async () => {
    const both = (by: number): number[] => [
      ...mark(0b1100_1010_0111),
      ...load(ADDRESS + by, 0),
      ...mark(0b0001_1100_0110),
      ...load(ADDRESS + 64 + by, 0),
    ];
    const finder = new FunctionFinder(await named([["both", both(0)]]), await named([["both", both(160)]]));
    const found = findNumber(finder, [0], ADDRESS + 20, ["constant"]);
    expect(found).toMatchObject({ value: ADDRESS + 180, isGuess: true });
  });
});

function signed(value: number): number[] {
  return [...uleb(value).slice(0, -1), uleb(value).at(-1)! | 0x80, 0];
}
