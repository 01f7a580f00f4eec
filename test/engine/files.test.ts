import fs from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  engineSpec,
  generateText,
  promptRequest,
  startEngine,
  temporaryFolder,
  writeModel,
} from "../support/engine-fixture.ts";
import { shardsOf, tinyLlama, tinyLora } from "../support/tiny-models.ts";
import type { EngineLoadOptions } from "../../src/engine/engine.ts";
import type { EngineSpec } from "../../src/engine/protocol/engine-spec.ts";

const folder = temporaryFolder();
afterAll(() => fs.rmSync(folder, { recursive: true }));

const model = tinyLlama();
const whole = writeModel(folder, "whole", model);
const shards = shardsOf(model, 3).map((shard, index) => writeModel(folder, `part-${index + 1}`, shard));
const adapter = writeModel(folder, "adapter", tinyLora());

async function textWith(spec: EngineSpec, options: EngineLoadOptions = {}): Promise<string> {
  const engine = await startEngine(spec, options);
  try {
    return await generateText(engine, promptRequest("once upon a time", { maxTokens: 12 }));
  } finally {
    await engine.close();
  }
}

/** Answer of the model in one file, and its progress during the load. */
let plain: string;
const progress: number[] = [];
beforeAll(async () => {
  plain = await textWith(engineSpec(whole), { onProgress: (value) => progress.push(value) });
});

describe("the files of a model", () => {
  test("can be shards, also with an adapter", async () => {
    const adapters = [{ path: adapter, scale: 1 }];
    const adapted = await textWith(engineSpec(whole, { adapters }));
    expect(await textWith(engineSpec(shards))).toBe(plain);
    expect(adapted).not.toBe(plain);
    expect(await textWith(engineSpec(shards, { adapters }))).toBe(adapted);
  });

  test("can include two adapters; one of scale 0 changes nothing", async () => {
    const none = await textWith(engineSpec(whole, { adapters: [{ path: adapter, scale: 0 }] }));
    expect(none).toBe(plain);
    const both = [0.5, 0.5].map((scale) => ({ path: adapter, scale }));
    expect(await textWith(engineSpec(whole, { adapters: both }))).not.toBe(none);
  });

  test("cannot include an adapter of another model", async () => {
    const other = writeModel(folder, "other-adapter", tinyLora({ embedding: 32 }));
    await expect(
      startEngine(engineSpec(whole, { adapters: [{ path: other, scale: 1 }] })),
    ).rejects.toMatchObject({
      code: "invalid_model_file",
      message: "The model file cannot be used: an adapter does not fit the model.",
    });
  });

  test("without a shard are refused", async () => {
    await expect(startEngine(engineSpec(shards.slice(0, 2)))).rejects.toMatchObject({
      code: "invalid_model_file",
    });
  });

  test("are read once, with progress up to the end", () => {
    expect(progress.length).toBeGreaterThan(1);
    expect(progress).toEqual(progress.toSorted((a, b) => a - b));
    expect(progress.at(-1)).toBe(1);
  });
});
