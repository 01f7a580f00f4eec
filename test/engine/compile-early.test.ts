import type { ChildProcess } from "node:child_process";
import fs from "node:fs";
import { afterAll, expect, test } from "vitest";
import { GRAPH_FUNCTION, WORTH_BYTES } from "../../src/engine/host/compile-early.ts";
import { createEngineStarter } from "../../src/engine/start-engine.ts";
import { PINNED_FUNCTIONS } from "../../wasm/pinned-functions.ts";
import {
  engineSpec,
  generateText,
  promptRequest,
  temporaryFolder,
  writeModel,
} from "../support/engine-fixture.ts";
import { spawnTestEngine } from "../support/program.ts";
import { tinyLlama } from "../support/tiny-models.ts";

const TIMEOUT_MS = 60_000;
/** What V8 writes when it has optimised a function. */
const OPTIMISED = new RegExp(`#${GRAPH_FUNCTION} using TurboFan`);

const folder = temporaryFolder();
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** Starts an engine whose V8 writes what it compiles. */
async function startTraced(modelFile: string) {
  let child: ChildProcess | undefined;
  let written = "";
  const start = createEngineStarter({
    loadTimeoutMs: TIMEOUT_MS,
    stallTimeoutMs: TIMEOUT_MS,
    spawn: (command, args, options) => {
      child = spawnTestEngine(command, ["--trace-wasm-compilation-times", ...args], options);
      child.stdout?.on("data", (piece: Buffer) => (written += piece.toString()));
      return child;
    },
  });
  const engine = await start(engineSpec(modelFile, { batchSize: 8 }));
  /** Resolves when V8 has written what is looked for. */
  const optimised = async (): Promise<void> => {
    while (!OPTIMISED.test(written)) {
      await new Promise((resolve) => child?.stdout?.once("data", resolve));
    }
  };
  return { engine, optimised, written: () => written };
}

test("the function that V8 compiles early is the one that computes graphs", () => {
  expect(GRAPH_FUNCTION).toBe(PINNED_FUNCTIONS.graphThread.index);
});

test("it is optimised without any request where the model is large", async () => {
  // One matrix of this model has 26 MB.
  const shape = { embedding: 512, feedForward: 48_000, blocks: 1, heads: 8, kvHeads: 8 };
  const file = writeModel(folder, "large", tinyLlama({ ...shape, weights: "Q8_0" }));
  expect(fs.statSync(file).size).toBeGreaterThan(WORTH_BYTES);
  const { engine, optimised } = await startTraced(file);
  await optimised();
  await engine.close();
});

test("it is not optimised for a small one, of which little is ever asked", async () => {
  const { engine, written } = await startTraced(writeModel(folder, "small", tinyLlama({ blocks: 1 })));
  await generateText(engine, promptRequest("It works"));
  await engine.close();
  expect(written()).toMatch(/using Liftoff/);
  expect(written()).not.toMatch(OPTIMISED);
});
