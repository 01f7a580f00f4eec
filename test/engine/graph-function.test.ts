import type { ChildProcess } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, describe, expect, test } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import { createEngineStarter } from "../../src/engine/start-engine.ts";
import type { EngineSpec } from "../../src/engine/protocol/engine-spec.ts";
import {
  engineSpec,
  generateText,
  NEVER,
  preparedEngine,
  promptRequest,
  SHIPPED_MODEL,
  temporaryFolder,
  writeModel,
} from "../support/engine-fixture.ts";
import type { GgufFile } from "../support/gguf-writer.ts";
import { tinyGemma2, tinyGemma3, tinyQwen2, tinyQwen3 } from "../support/tiny-families.ts";
import { spawnTestEngine } from "../support/program.ts";

const TIMEOUT_MS = 120_000;
/** V8's trace when it compiles llama.cpp's graph function, which has more than 300,000 bytes. */
const COMPILED = /bodysize 3\d{5}\b/;

/** Makes an engine exit on SIGTERM, so that V8 flushes its trace, which a kill would lose. */
const EXIT_ON_SIGTERM = 'data:text/javascript,process.on("SIGTERM",()=>process.exit())';
const TRACED = ["--trace-wasm-compilation-times", "--import", EXIT_ON_SIGTERM];

const folder = temporaryFolder();
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** V8's trace of compilations while an engine is used. */
async function traced(spec: EngineSpec, use: (engine: Engine) => Promise<unknown>): Promise<string> {
  const { wasmPath, heapLimitBytes } = await preparedEngine();
  let child: ChildProcess | undefined;
  let written: Promise<string> | undefined;
  const start = createEngineStarter({
    wasmPath,
    heapLimitBytes,
    loadTimeoutMs: TIMEOUT_MS,
    stallTimeoutMs: TIMEOUT_MS,
    spawn: (command, args, options) => {
      child = spawnTestEngine(command, [...TRACED, ...args], options);
      written = text(child.stdout!);
      return child;
    },
  });
  const engine = await start(spec);
  await use(engine);
  child!.kill("SIGTERM");
  await engine.exited;
  return await written!;
}

const say = (engine: Engine): Promise<string> => generateText(engine, promptRequest("Once upon a time"));
const write = (name: string, model: GgufFile): string => writeModel(folder, name, model);

describe("llama.cpp's function for graphs", () => {
  test.each([
    ["Llama", () => SHIPPED_MODEL, {}],
    ["Llama without flash attention", () => SHIPPED_MODEL, { flashAttention: "false" }],
    ["Qwen 2", () => write("qwen2", tinyQwen2()), {}],
    ["Qwen 3", () => write("qwen3", tinyQwen3()), {}],
    ["Gemma 3", () => write("gemma3", tinyGemma3()), {}],
  ] as const)("is not needed for %s", async (_, model, settings) => {
    const written = await traced(engineSpec(model(), settings), say);
    expect(written).toMatch(/using Liftoff.* bodysize \d/);
    expect(written).not.toMatch(COMPILED);
  });

  test("is not needed for embeddings", async () => {
    const model = path.join(path.dirname(SHIPPED_MODEL), "daybreak-mini-embed.gguf");
    const written = await traced(engineSpec(model, { purpose: "embed" }), (engine) =>
      engine.embed("a word", NEVER),
    );
    expect(written).toMatch(/using Liftoff.* bodysize \d/);
    expect(written).not.toMatch(COMPILED);
  });

  test("computes operations without an own kernel, such as tanh of Gemma 2", async () => {
    expect(await traced(engineSpec(write("gemma2", tinyGemma2())), say)).toMatch(COMPILED);
  });
});
