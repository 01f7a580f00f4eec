#!/usr/bin/env node
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { writeGguf } from "../../../test/support/gguf-writer.ts";
import { atOnce, Findings } from "./kit/findings.ts";
import { Random } from "./kit/random.ts";
import { readRunOptions } from "./kit/run-options.ts";
import { WatchedDaemon } from "./kit/watched-daemon.ts";
import { FileAttack } from "./model-files/file-attack.ts";
import { makeRecipe } from "./model-files/make-recipe.ts";
import { BASES } from "./model-files/recipe.ts";

const options = readRunOptions(
  `
Gives a daemon damaged and hostile model files: every number of the header, every known key, tensors, vocabularies,
chat templates, adapters, projectors, shards, cut and flipped files. Each must be refused with a clear error, or work.

  node scripts/test/withstand/model-files.ts [options]`,
  { seconds: 60 },
);

/** Engines at the same time; most files are rejected without one. */
const WORKERS = 4;

const findings = new Findings("model-files", options);
const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-model-files-"));
const daemon = await WatchedDaemon.start(findings, { args: ["--models-slots", "1", "--log-level", "warn"] });
try {
  const model = path.join(folder, "model.gguf");
  writeGguf(model, BASES.llama());
  const attack = new FileAttack(daemon.url, findings, { folder, model });
  await atOnce(WORKERS, findings, async (input) => {
    // Seeded by its number, so that concurrency does not change it.
    const random = new Random(options.seed * 1_000_003 + input);
    await attack.run(input, makeRecipe(random));
  });
} finally {
  const figures = await daemon.stop();
  rmSync(folder, { recursive: true });
  findings.finish(figures);
}
