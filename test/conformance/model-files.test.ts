import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Findings } from "../../scripts/test/withstand/kit/findings.ts";
import { Random } from "../../scripts/test/withstand/kit/random.ts";
import { CRASH_CORPUS } from "../../scripts/test/withstand/model-files/crash-corpus.ts";
import { FileAttack } from "../../scripts/test/withstand/model-files/file-attack.ts";
import { makeRecipe } from "../../scripts/test/withstand/model-files/make-recipe.ts";
import { BASES, writeRecipe } from "../../scripts/test/withstand/model-files/recipe.ts";
import { writeGguf } from "../support/gguf-writer.ts";
import { postJson } from "../support/post-json.ts";
import { sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";

const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-model-files-"));
let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await sharedDaemon();
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Takes its engine as long as the one that doubles a text; test/conformance/hostile-templates.test.ts has both. */
const SLOW = "a chat template that counts to a billion";

describe("a file that once did harm is refused with a clear error", () => {
  test.each(CRASH_CORPUS.filter(([what]) => what !== SLOW))("refuses %s", async (what, recipe, code) => {
    const alias = what.replaceAll(/\W+/g, "-");
    const [file] = writeRecipe(path.join(folder, `${alias}.gguf`), recipe);
    const answer = await postJson(`${daemon.url}/api/models/load`, { alias, path: file });
    expect(await answer.json()).toEqual({
      error: expect.objectContaining({ code, message: expect.stringMatching(/^[A-Z][^\n]{20,600}\.$/) }),
    });
    expect((await fetch(`${daemon.url}/health`)).status).toBe(200);
  });
});

test("files that are wrong at random are refused or work, one after the other", async () => {
  const model = path.join(folder, "model.gguf");
  writeGguf(model, BASES.llama());
  const findings = new Findings("model-files", { seed: 1, seconds: 60, count: 12 });
  const attack = new FileAttack(daemon.url, findings, { folder, model });
  for (let input = 0; input < 12; input++) {
    await attack.run(input, makeRecipe(new Random(input)));
  }
  expect(findings.broken).toBe(0);
});
