import { expect, test } from "vitest";
import { SampledTokenReader } from "../../../../src/engine/core/loop-request.ts";
import { MEMORY_CELLS } from "../../../../wasm/memory-cells.ts";
import { hostMemory } from "../../../support/kernel-host-module.ts";

const MAX_CHOSEN = 8192;
const AT = 65_536;

function written(count: number, entries: readonly (readonly [number, number])[]): SampledTokenReader {
  const memory = hostMemory(4, { shared: true });
  const view = new DataView(memory.buffer);
  view.setUint32(MEMORY_CELLS.chosenCount, count, true);
  view.setBigUint64(MEMORY_CELLS.chosenTokens, BigInt(AT), true);
  const chosen = new SampledTokenReader(memory, count);
  for (const [number, token] of entries) {
    const next = view.getUint32(MEMORY_CELLS.chosenCount, true);
    view.setInt32(AT + 8 * (next % MAX_CHOSEN), number, true);
    view.setInt32(AT + 8 * (next % MAX_CHOSEN) + 4, token, true);
    view.setUint32(MEMORY_CELLS.chosenCount, (next + 1) >>> 0, true);
  }
  return chosen;
}

const ENTRIES = [
  [1, 70],
  [2, 80],
  [1, ~71],
] as const;
const TAKEN = new Map([
  [1, { ids: [70, 71], replaced: 1 }],
  [2, { ids: [80], replaced: 0 }],
]);

test("reports each sampled token once, grouped by request number", () => {
  const chosen = written(0, ENTRIES);
  expect(chosen.take()).toEqual(TAKEN);
  expect(chosen.take()).toEqual(new Map());
});

test("reads tokens across the end of the ring buffer and an overflow of the counter", () => {
  expect(written(MAX_CHOSEN - 1, ENTRIES).take()).toEqual(TAKEN);
  expect(written(2 ** 32 - 1, ENTRIES).take()).toEqual(TAKEN);
});
