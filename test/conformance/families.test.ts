import fs from "node:fs";
import { afterAll, describe, expect, test } from "vitest";
import type { StartEngine } from "../../src/engine/engine.ts";
import type { EngineSpec } from "../../src/engine/protocol/engine-spec.ts";
import {
  engineSpec,
  NEVER,
  startEngine,
  startStockEngine,
  temporaryFolder,
  writeModel,
} from "../support/engine-fixture.ts";
import { tinyGemma2, tinyGemma3, tinyQwen2, tinyQwen3 } from "../support/tiny-families.ts";

const folder = temporaryFolder();
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** Longer than a window of attention. */
const TEXT = "once upon a time there was a cat that had a hat";
/** Numbers of a vector are about 1, and sums are added in another order. */
const LARGEST_DIFFERENCE = 1e-5;

/** Compares logits rather than text: random models generate no text. */
async function vectorOf(start: StartEngine, spec: EngineSpec): Promise<number[]> {
  const engine = await start(spec);
  try {
    return (await engine.embed(TEXT, NEVER)).vector;
  } finally {
    await engine.close();
  }
}

describe.each([
  ["Qwen 2", tinyQwen2],
  ["Qwen 3", tinyQwen3],
  ["Gemma 3", tinyGemma3],
  ["Gemma 2", tinyGemma2],
] as const)("a model of the family %s", (name, model) => {
  test("computes what the stock engine does", { timeout: 120_000 }, async () => {
    const file = writeModel(folder, name, model());
    const spec = engineSpec(file, { purpose: "embed", slots: 1, threads: 2, flashAttention: "false" });
    const stock = await vectorOf(startStockEngine, spec);
    const ours = await vectorOf(startEngine, spec);
    expect(ours.length).toBe(stock.length);
    const differences = ours.map((value, at) => Math.abs(value - stock[at]!));
    expect(Math.max(...differences)).toBeLessThan(LARGEST_DIFFERENCE);
  });
});
