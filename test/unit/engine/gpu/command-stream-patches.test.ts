import fs from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { applyPatches } from "../../../../src/engine/core/worker-patches.ts";
import { commandStreamPatches } from "../../../../src/engine/gpu/command-stream-patches.ts";
import { queueWaitPatches } from "../../../../src/engine/gpu/queue-wait-patches.ts";

/** The package's scripts are texts in this file. */
const SCRIPTS = fileURLToPath(
  new URL("../../../../node_modules/@wllama/wllama/esm/index.js", import.meta.url),
);

test("llama.cpp's script takes the stream's patches beside the others", () => {
  const script = fs.readFileSync(SCRIPTS, "utf8");
  const patched = applyPatches(script, [...queueWaitPatches(1), ...commandStreamPatches(true)]);
  expect(patched.match(/daybreakStream\.unexpected\(\)/g)).toHaveLength(4);
  expect(patched.match(/daybreakStream\.forget\(\)/g)).toHaveLength(3);
  expect(patched).toContain("mostRecordings:12");
  expect(applyPatches(script, commandStreamPatches(false))).toContain("mostRecordings:0");
});
