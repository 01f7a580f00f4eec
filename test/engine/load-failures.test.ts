import fs from "node:fs";
import path from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { ServiceError } from "../../src/errors/service-error.ts";
import { createEngineStarter } from "../../src/engine/start-engine.ts";
import { isRunning } from "../../src/engine/child-process.ts";
import { engineSpec, temporaryFolder, writeModel } from "../support/engine-fixture.ts";
import { ggufHeader, string, u32, writeTruncated, writeWithFlippedBits } from "../support/gguf-writer.ts";
import { spawnTestEngine } from "../support/program.ts";
import { tinyLlama, tinyLora, tinyProjector } from "../support/tiny-models.ts";
import { FILE_RIGHTS } from "../support/need.ts";

const folder = temporaryFolder();
const at = (name: string): string => path.join(folder, name);
let good: string;
const pids: number[] = [];

const start = createEngineStarter({
  loadTimeoutMs: 120_000,
  stallTimeoutMs: 120_000,
  spawn: (command, args, options) => {
    const child = spawnTestEngine(command, args, options);
    pids.push(child.pid ?? 0);
    return child;
  },
});

beforeAll(() => {
  good = writeModel(folder, "good", tinyLlama({ blocks: 1 }));
});
afterAll(() => fs.rmSync(folder, { recursive: true }));
afterEach(() => {
  const left = pids.filter(isRunning);
  if (left.length > 0) throw new Error(`processes stay behind: ${left.join(", ")}`);
});

/** Loads a file, which must fail with a ServiceError. */
async function loadError(file: string): Promise<ServiceError> {
  const outcome = await start(engineSpec(file)).catch((error: unknown) => error);
  if (outcome instanceof ServiceError) return outcome;
  throw new Error("the file was loaded, or refused with another error", { cause: outcome });
}

describe("invalid files are refused before a process is started", () => {
  test.each([
    ["a missing file", () => at("nowhere.gguf"), "model_file_not_found", /nowhere.* does not exist/],
    ["a folder", () => folder, "invalid_model_file", /not a file/],
    ["an empty file", () => write("empty", Buffer.alloc(0)), "invalid_model_file", /0 bytes/],
    [
      "another format",
      () => write("zip", Buffer.from("PK\u0003\u0004".padEnd(100))),
      "invalid_model_file",
      /not a GGUF/,
    ],
  ])("refuses %s", async (_, makeFile, code, message) => {
    const before = pids.length;
    const file = makeFile();
    expect(await loadError(file)).toMatchObject({ code, message: expect.stringMatching(message) });
    expect(pids).toHaveLength(before);
  });

  test.skipIf(FILE_RIGHTS.isMissing)(`refuses an unreadable file${FILE_RIGHTS.note}`, async () => {
    const file = write("secret", fs.readFileSync(good));
    fs.chmodSync(file, 0);
    expect(await loadError(file)).toMatchObject({ code: "model_load_failed" });
  });
});

const header = (): Buffer => ggufHeader(tinyLlama({ blocks: 1 }));
const countOf = (offset: number, value: bigint): Buffer => {
  const bytes = fs.readFileSync(good);
  bytes.writeBigUInt64LE(value, offset);
  return bytes;
};

describe("a damaged model is reported, and no process is left", () => {
  test.each<[string, () => Buffer]>([
    ["36 bytes", () => fs.readFileSync(good).subarray(0, 36)],
    ["the header alone", () => header()],
    ["half of the header", () => header().subarray(0, header().length / 2)],
    ["all but the last kilobyte", () => fs.readFileSync(good).subarray(0, -1024)],
    ["more tensors than a file can hold", () => countOf(8, 2n ** 60n)],
    ["more metadata than a file can hold", () => countOf(16, 2n ** 60n)],
    ["a negative number of tensors", () => countOf(8, 2n ** 64n - 1n)],
    ["a name longer than the file", () => countOf(24, 2n ** 48n)],
    ["an unknown version", () => countOf(4, 99n)],
  ])("refuses %s", async (name, bytes) => {
    const error = await loadError(write(name.replaceAll(" ", "-"), bytes()));
    expect(error.code).toMatch(/^(invalid_model_file|model_load_failed)$/);
    expect(error.message).toMatch(/: .{8,}/);
  });

  test.each([1, 2, 3, 4])("survives random bit flips (seed %i)", async (seed) => {
    const file = at(`flipped-${seed}.gguf`);
    writeWithFlippedBits(good, file, { seed, flips: 30, end: 2000 });
    const error = await loadError(file);
    expect(error.code).toMatch(/^(invalid_model_file|model_load_failed|insufficient_memory|engine_crashed)$/);
  });

  test("refuses truncated weights", async () => {
    writeTruncated(good, at("cut.gguf"), Math.floor(fs.statSync(good).size / 2));
    expect(await loadError(at("cut.gguf"))).toMatchObject({ code: "invalid_model_file" });
  });
});

describe("an intact file that is not a model", () => {
  test.each([
    ["of an unknown architecture", tinyLlama({ architecture: "nonsense" }), "invalid_model_file", /nonsense/],
    [
      "without a needed key",
      tinyLlama({ metadata: { "llama.block_count": string("two") } }),
      "invalid_model_file",
      /block_count/,
    ],
    [
      "with more blocks than weights",
      tinyLlama({ metadata: { "llama.block_count": u32(9) } }),
      "invalid_model_file",
      /tensor|blk/,
    ],
    [
      "whose vocabulary makes llama.cpp abort",
      tinyLlama({ words: ["the"] }), // a token that is there already
      "invalid_model_file",
      /vocabulary is damaged/,
    ],
    ["but an adapter", tinyLora(), "invalid_model_file", /context_length|lora/],
    ["but a vision projector", tinyProjector(), "invalid_model_file", /projector/],
  ])("(%s) is refused with llama.cpp's reason", async (name, model, code, message) => {
    const file = writeModel(folder, name.replaceAll(/\W/g, "-"), model);
    expect(await loadError(file)).toMatchObject({ code, message: expect.stringMatching(message) });
  });

  test("is refused as a projector", async () => {
    const spec = engineSpec(good, { projectorFile: good });
    await expect(start(spec)).rejects.toMatchObject({ code: "invalid_model_file" });
  });

  test("is refused as an adapter", async () => {
    const spec = engineSpec(good, { adapters: [{ path: good, scale: 1 }] });
    await expect(start(spec)).rejects.toMatchObject({ name: "ServiceError" });
  });
});

test("settings that would hang or crash llama.cpp are refused before a process is started", async () => {
  const before = pids.length;
  for (const wrong of [
    { batchSize: 0 },
    { slots: 0 },
    { threads: 64 },
    { contextSize: Number.NaN },
    { gpuLayers: -7 },
  ]) {
    await expect(start(engineSpec(good, wrong))).rejects.toThrow(/too_|invalid_/);
  }
  expect(pids).toHaveLength(before);
});

function write(name: string, bytes: Buffer): string {
  const file = at(`${name}.gguf`);
  fs.writeFileSync(file, bytes);
  return file;
}
