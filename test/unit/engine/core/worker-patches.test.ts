import fs, { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { draftCostPatch, promptReusePatch } from "../../../../src/engine/core/kernel-controls.ts";
import {
  applyPatches,
  moduleHeapPatches,
  STOCK_HEAP_BYTES,
  WORKER_PATCHES,
  workerHeapPatches,
} from "../../../../src/engine/core/worker-patches.ts";
import { VERB_PATCHES } from "../../../../src/engine/core/worker-verbs.ts";
import { IMAGE_HEAP_BYTES } from "../../../../wasm/changes.ts";
import { parseModule } from "../../../../wasm/linker/wasm-module.ts";
import { MEMORY_CELLS } from "../../../../wasm/memory-cells.ts";

const patch = { purpose: "say goodbye", find: "hello", replace: "goodbye" };

test("a patch replaces the only occurrence of its text", () => {
  expect(applyPatches("// hello world", [patch])).toBe("// goodbye world");
});

test.each([
  ["never", "hi world"],
  ["twice", "hello hello"],
])("a patch whose text occurs %s fails with its purpose", (_, script) => {
  expect(() => applyPatches(script, [patch])).toThrow(/not supported.*say goodbye/);
});

test("every patch applies exactly once to the installed wllama", () => {
  const bundle = fs.readFileSync(fileURLToPath(import.meta.resolve("@wllama/wllama/esm/index.js")), "utf8");
  const literal = /var LLAMA_CPP_WORKER_CODE = ("(?:[^"\\]|\\.)*");/s.exec(bundle)?.[1];
  // The other script is a single-quoted string, which is patched without unescaping it.
  const emscripten = /var WLLAMA_EMSCRIPTEN_CODE = '((?:[^'\\]|\\.)*)';/s.exec(bundle)?.[1];
  const script = emscripten + String(JSON.parse(literal ?? '""'));
  expect(
    applyPatches(script, [
      ...WORKER_PATCHES,
      ...VERB_PATCHES,
      promptReusePatch({ promptCacheBytes: 1, sharedContext: true }),
      draftCostPatch([new Blob(["12345"])], new Blob(["1"])),
    ]),
  ).not.toBe(script);
});

test("the cost of a draft model's step is the ratio of its file size to that of all shards of the model", () => {
  const five = new Blob(["12345"]);
  expect(draftCostPatch([five], new Blob(["1"])).replace).toContain(`${MEMORY_CELLS.costOfDraft}, 20, true`);
  expect(draftCostPatch([five, five], five).replace).toContain(`${MEMORY_CELLS.costOfDraft}, 50, true`);
});

const esm = (file: string): string =>
  fileURLToPath(new URL(`../../../../node_modules/@wllama/wllama/esm/${file}`, import.meta.url));

/** File that contains the package's scripts as strings. */
const scripts = readFileSync(esm("index.js"), "utf8");

test("the stock heap limit is the one that the stock WASM declares, and needs no patches", () => {
  const { imports } = parseModule(readFileSync(esm("wasm/wllama.wasm")));
  const [pages] = imports.flatMap(({ limits }) => limits?.maximum ?? []);
  expect((pages ?? 0) * 64 * 1024).toBe(STOCK_HEAP_BYTES);
  expect([...moduleHeapPatches(STOCK_HEAP_BYTES), ...workerHeapPatches(STOCK_HEAP_BYTES)]).toEqual([]);
});

test("every occurrence of the heap limit is patched", () => {
  const patched = applyPatches(scripts, [
    ...moduleHeapPatches(IMAGE_HEAP_BYTES),
    ...workerHeapPatches(IMAGE_HEAP_BYTES),
  ]);
  expect(patched).toContain("maximum:262144n");
  expect(patched).toContain("getHeapMax=()=>17179869184");
  expect(patched).toContain("let maxBytes = 17179869184;");
  expect(patched).not.toMatch(/maximum:65536n|getHeapMax=\(\)=>4294967296|4096 \* 1024 \* 1024/);
});
