import fs from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { draftCostPatch } from "../../../../src/engine/core/draft-cost.ts";
import { promptReusePatch } from "../../../../src/engine/core/prompt-reuse.ts";
import { TOKENIZER_PATCHES } from "../../../../src/engine/core/tokenizer-patches.ts";
import {
  applyPatches,
  PatchMismatchError,
  WORKER_PATCHES,
} from "../../../../src/engine/core/worker-patches.ts";
import { MEMORY_CELLS } from "../../../../wasm/memory-cells.ts";

const patch = { purpose: "say goodbye", find: "hello", replace: "goodbye" };

test("a patch replaces the one place that it names", () => {
  expect(applyPatches("// hello world", [patch])).toBe("// goodbye world");
});

test.each([
  ["never", "hi world"],
  ["twice", "hello hello"],
])("a text that occurs %s is refused with the purpose", (_, script) => {
  expect(() => applyPatches(script, [patch])).toThrow(PatchMismatchError);
  expect(() => applyPatches(script, [patch])).toThrow(/not supported.*say goodbye/);
});

test("every patch fits the installed wllama exactly once", () => {
  const bundle = fs.readFileSync(fileURLToPath(import.meta.resolve("@wllama/wllama/esm/index.js")), "utf8");
  const literal = /var LLAMA_CPP_WORKER_CODE = ("(?:[^"\\]|\\.)*");/s.exec(bundle)?.[1];
  // The other script stands between single quotes; only what is replaced in it matters here.
  const emscripten = /var WLLAMA_EMSCRIPTEN_CODE = '((?:[^'\\]|\\.)*)';/s.exec(bundle)?.[1];
  const script = emscripten + String(JSON.parse(literal ?? '""'));
  expect(
    applyPatches(script, [
      ...WORKER_PATCHES,
      ...TOKENIZER_PATCHES,
      promptReusePatch({ promptCacheBytes: 1, sharedContext: true }),
      draftCostPatch([new Blob(["12345"])], new Blob(["1"])),
    ]),
  ).not.toBe(script);
});

test("a draft model costs the part of a step that its file is of the model's, shards together", () => {
  const five = new Blob(["12345"]);
  expect(draftCostPatch([five], new Blob(["1"])).replace).toContain(`${MEMORY_CELLS.costOfDraft}, 20, true`);
  expect(draftCostPatch([five, five], five).replace).toContain(`${MEMORY_CELLS.costOfDraft}, 50, true`);
});
