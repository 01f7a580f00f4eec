import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import {
  moduleHeapPatches,
  STOCK_HEAP_BYTES,
  workerHeapPatches,
} from "../../../../src/engine/core/heap-patches.ts";
import { applyPatches } from "../../../../src/engine/core/worker-patches.ts";
import { IMAGE_HEAP_BYTES } from "../../../../wasm/changes.ts";
import { parseModule } from "../../../../wasm/linker/wasm-module.ts";

const esm = (file: string): string =>
  fileURLToPath(new URL(`../../../../node_modules/@wllama/wllama/esm/${file}`, import.meta.url));

/** The package's scripts are texts in this file. */
const scripts = readFileSync(esm("index.js"), "utf8");

test("the stock heap is what the stock WASM declares, and needs no change", () => {
  const { imports } = parseModule(readFileSync(esm("wasm/wllama.wasm")));
  const [pages] = imports.flatMap(({ limits }) => limits?.maximum ?? []);
  expect((pages ?? 0) * 64 * 1024).toBe(STOCK_HEAP_BYTES);
  expect([...moduleHeapPatches(STOCK_HEAP_BYTES), ...workerHeapPatches(STOCK_HEAP_BYTES)]).toEqual([]);
});

test("every place that names the largest heap is changed", () => {
  const patched = applyPatches(scripts, [
    ...moduleHeapPatches(IMAGE_HEAP_BYTES),
    ...workerHeapPatches(IMAGE_HEAP_BYTES),
  ]);
  expect(patched).toContain("maximum:262144n");
  expect(patched).toContain("getHeapMax=()=>17179869184");
  expect(patched).toContain("let maxBytes = 17179869184;");
  expect(patched).not.toMatch(/maximum:65536n|getHeapMax=\(\)=>4294967296|4096 \* 1024 \* 1024/);
});
