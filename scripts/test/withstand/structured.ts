#!/usr/bin/env node
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Engine } from "../../../src/engine/engine.ts";
import { byteLevelLlama } from "../../../test/support/byte-level-llama.ts";
import { engineSpec, SHIPPED_MODEL, startEngine, writeModel } from "../../../test/support/engine-fixture.ts";
import {
  type Form,
  FORMS,
  IMPOSSIBLE_GRAMMARS,
  wildRequest,
} from "../../../test/support/structured/forms.ts";
import { outcomeOf } from "../../../test/support/structured/outcome.ts";
import { randomForm } from "../../../test/support/structured/random-schema.ts";
import { CHATML_TEMPLATE, CHATML_WORDS, tinyLlama } from "../../../test/support/tiny-models.ts";
import { atOnce, Findings } from "./kit/findings.ts";
import { Random } from "./kit/random.ts";
import { readRunOptions } from "./kit/run-options.ts";

const options = readRunOptions(
  `
Asks models of both kinds of vocabulary, whose every token is likely, for answers that are bound to a form: JSON schemas
fixed and random, grammars, tool calls, forms that nothing fits. Each must end; what ends by itself must have the form;
what fails must say so in a sentence; and the engine must go on.

  node scripts/test/withstand/structured.ts [options]`,
  { seconds: 60 },
);

const SLOTS = 4;
const folder = mkdtempSync(path.join(tmpdir(), "daybreak-structured-"));
const chat = { chatTemplate: CHATML_TEMPLATE, words: CHATML_WORDS };
const files = {
  words: writeModel(folder, "words", tinyLlama(chat)),
  bytes: writeModel(folder, "bytes", byteLevelLlama(chat)),
  shipped: SHIPPED_MODEL,
};
const impossible = IMPOSSIBLE_GRAMMARS.map((grammar): Form => {
  return { name: grammar, format: { type: "grammar", grammar }, isRight: () => false };
});

const findings = new Findings("structured", options);
const engines: [string, Engine][] = [];
for (const [name, file] of Object.entries(files))
  engines.push([name, await startEngine(engineSpec(file, { slots: SLOTS }))]);

try {
  await Promise.all(
    engines.map(([name, engine]) => atOnce(SLOTS, findings, (input) => ask(name, engine, input))),
  );
} finally {
  for (const [name, engine] of engines) {
    if (!engine.alive) findings.add("an engine ended", name);
    await engine.close();
  }
  rmSync(folder, { recursive: true });
  findings.finish();
}

async function ask(model: string, engine: Engine, input: number): Promise<void> {
  const random = new Random(options.seed + input);
  const isImpossible = random.chance(0.1);
  const form = isImpossible
    ? random.pick(impossible)
    : random.chance(0.5)
      ? random.pick(FORMS)
      : randomForm(random);
  const request = wildRequest(form.format, random.int(0, 2 ** 31), random.chance(0.7) ? "chat" : "prompt");
  const outcome = await outcomeOf(engine, form, request);
  const expected = isImpossible ? ["failed"] : ["right", "cut"];
  if (!expected.includes(outcome.kind)) {
    const asked = JSON.stringify(form.format);
    findings.add(outcome.kind, `#${input} ${model} ${form.name} ${asked}: ${JSON.stringify(outcome)}`);
  }
  findings.count(isImpossible ? "impossible ones that failed at once" : outcome.kind);
}
