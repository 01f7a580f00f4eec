#!/usr/bin/env node
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Engine } from "../../../src/engine/engine.ts";
import type { EngineSpec } from "../../../src/engine/protocol/engine-spec.ts";
import {
  collect,
  doneOf,
  engineSpec,
  NEVER,
  promptRequest,
  startEngine,
  textOf,
  writeModel,
} from "../../../test/support/engine-fixture.ts";
import { generated } from "../../../test/support/generated.ts";
import { tinyGemma3 } from "../../../test/support/tiny-families.ts";
import { tinyLlama } from "../../../test/support/tiny-models.ts";
import { atOnce, Findings } from "./kit/findings.ts";
import { Random } from "./kit/random.ts";
import { readRunOptions } from "./kit/run-options.ts";

const options = readRunOptions(
  `
Has engines that reuse prompts answer random conversations at once, which go on, branch, are cancelled, or are of other
clients and begin the same way, with room for few of them. Every answer must be that of an engine that has read nothing
else: then no conversation sees another's text, nor what was computed from it.

  node scripts/test/withstand/prompts.ts [options]`,
  { seconds: 60 },
);

const SLOTS = 4;
const CONTEXT = 1024;
/** Four of them fit into a context that slots share. */
const MAX_CHARACTERS = 700;
const CONVERSATIONS = 12;
/** Bytes of the prompt cache: keys and values of four conversations, so that most are dropped again. */
const STORE_BYTES = 600 * 1024;

const folder = mkdtempSync(path.join(tmpdir(), "daybreak-prompts-"));
const llama = writeModel(folder, "llama", tinyLlama({ context: CONTEXT }));
const windows = writeModel(folder, "windows", tinyGemma3());
const start = async (file: string, overrides: Partial<EngineSpec>): Promise<Engine> =>
  await startEngine(engineSpec(file, { contextSize: CONTEXT, slots: SLOTS, ...overrides }));
const reusing = { promptCacheBytes: STORE_BYTES };

const findings = new Findings("prompts", options);
const afresh = await start(llama, { slots: 2 * SLOTS });
const attacked = [
  { name: "own contexts", afresh, engine: await start(llama, reusing) },
  { name: "a shared context", afresh, engine: await start(llama, { ...reusing, sharedContext: true }) },
  {
    name: "windows of attention",
    afresh: await start(windows, {}),
    engine: await start(windows, reusing),
  },
] as const;
type Attacked = (typeof attacked)[number];
let [reused, read] = [0, 0];

try {
  await Promise.all(
    attacked.map(async (each, at) => {
      const conversations = Array.from({ length: CONVERSATIONS }, (_, number) => begin(new Random(number)));
      await atOnce(SLOTS, findings, async (input) => {
        const random = new Random(options.seed + attacked.length * input + at);
        await turn(each, conversations, random, input);
      });
    }),
  );
} finally {
  for (const engine of new Set(attacked.flatMap((each) => [each.engine, each.afresh]))) {
    if (!engine.alive) findings.add("an engine ended", "see the last requests");
    await engine.close();
  }
  rmSync(folder, { recursive: true });
  findings.finish({ "tokens reused": reused, "tokens of prompts": read });
}

/** Half of the conversations have one of two system prompts. */
function begin(random: Random): string {
  const system = random.chance(0.5) ? `system ${random.int(0, 1)} says be kind to all `.repeat(3) : "";
  return `${system}secret ${random.int(0, 1e6)} `;
}

async function turn(
  { name, engine, afresh: other }: Attacked,
  conversations: string[],
  random: Random,
  input: number,
): Promise<void> {
  const at = random.int(0, conversations.length - 1);
  const prompt = conversations[at]!;
  const request = promptRequest(prompt, { maxTokens: random.int(1, 8), cachePrompt: random.chance(0.9) });
  if (random.chance(0.1)) {
    await cancelled(engine, prompt, random);
    findings.count("cancelled");
    return;
  }
  const events = await collect(generated(engine, request, NEVER));
  const { usage } = doneOf(events);
  [reused, read] = [reused + usage.cachedTokens, read + usage.promptTokens];
  const expected = await collect(generated(other, { ...request, cachePrompt: false }, NEVER));
  const [answer, right] = [textOf(events), textOf(expected)];
  if (answer !== right)
    findings.add("another answer", `#${input} ${name}: ${JSON.stringify({ prompt, answer, right })}`);
  findings.count(`${name}: answered`);
  conversations[at] = next(prompt, answer, random);
}

/** Continues the conversation, branches off from it, or begins a new one. */
function next(prompt: string, answer: string, random: Random): string {
  if (prompt.length > MAX_CHARACTERS || random.chance(0.05)) return begin(random);
  if (random.chance(0.2)) return prompt.slice(0, random.int(10, prompt.length));
  return `${prompt}${answer} and then ${random.int(0, 1e9)} `;
}

/** A client leaves while its prompt is read, or its answer written. */
async function cancelled(engine: Engine, prompt: string, random: Random): Promise<void> {
  const leaves = new AbortController();
  const left = random.int(1, 3);
  let seen = 0;
  try {
    for await (const _ of generated(engine, promptRequest(prompt, { maxTokens: 20 }), leaves.signal))
      if (++seen === left) leaves.abort(new Error("the client left"));
  } catch (error) {
    if (!leaves.signal.aborted) throw error;
  }
}
