import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { writeGguf } from "../support/gguf-writer.ts";
import natives from "../support/native-quantizations.json" with { type: "json" };
import { postJson } from "../support/post-json.ts";
import { QUANTIZATION_MODELS } from "../support/quantization-models.ts";
import { sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { tinyLlama } from "../support/tiny-models.ts";
import { runCli } from "./cli-process.ts";

const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-quantize-"));
const source = path.join(folder, "shared.gguf");
/** Model that takes several seconds to quantize. */
const long = path.join(folder, "long.gguf");
let daemon: TestDaemon;
beforeAll(async () => {
  writeGguf(source, QUANTIZATION_MODELS["shared"]!());
  writeGguf(long, tinyLlama({ embedding: 512, feedForward: 6144, blocks: 1, heads: 8, weights: "F16" }));
  daemon = await sharedDaemon();
});
afterAll(() => rmSync(folder, { recursive: true }));

async function post(route: string, body: object, signal?: AbortSignal): Promise<Response> {
  return await postJson(daemon.url + route, body, signal);
}

async function fileOf(alias: string): Promise<string> {
  const answer = await fetch(`${daemon.url}/api/models/${alias}`);
  const { path: file }: { path: string } = await answer.json();
  return file;
}

function sha256(file: string): string {
  return createHash("sha256").update(readFileSync(file)).digest("hex");
}

async function remove(alias: string): Promise<void> {
  await fetch(`${daemon.url}/api/models/${alias}`, { method: "DELETE" });
}

describe("quantized models equal those of llama-quantize", () => {
  test("by a streamed request with progress, and they answer", async () => {
    expect(sha256(source)).toBe(natives.shared.source);
    const body = { source, destination: "small", quantization: "Q4_K_M", stream: true };
    const text = await (await post("/api/models/quantize", body)).text();
    const lines = text.trimEnd().split("\n");
    const steps: { status: string; progress?: number }[] = lines.map((line) => JSON.parse(line));
    const result = steps.pop();
    const size = readFileSync(await fileOf("small")).length;
    expect(result).toMatchObject({ model: "small", quantization: "Q4_K_M", size_bytes: size });
    expect(steps.at(-1)).toMatchObject({ status: "quantizing", progress: 1 });
    expect(sha256(await fileOf("small"))).toBe(natives.shared.Q4_K_M);
    await post("/api/models/load", { alias: "small", context_size: 256 });
    const spoken = await post("/api/generate", { model: "small", prompt: "once", max_tokens: 4 });
    expect(spoken.status).toBe(200);
    await post("/api/models/small/unload", {});
  });

  test("by the command line, which prints the size", async () => {
    const flags = ["--socket", daemon.socket, "-q", "q6_k"];
    const done = await runCli(["quantize", source, "cli", ...flags]);
    expect(done).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Quantized cli to Q6_K: .* 6\.\d+ bits/),
    });
    expect(sha256(await fileOf("cli"))).toBe(natives.shared.Q6_K);
    await remove("cli");
  });

  test("by Ollama's create, with the settings of the request", async () => {
    const text = await (
      await post("/ollama/api/create", {
        model: "llama",
        from: source,
        quantize: "q8_0",
        system: "Be brief.",
      })
    ).text();
    expect(text).toMatch(/"quantizing F32 model to Q8_0"[^]*"success"/);
    expect(sha256(await fileOf("llama"))).toBe(natives.shared.Q8_0);
    const shown = await fetch(`${daemon.url}/api/models/llama`);
    expect(await shown.json()).toMatchObject({ system: "Be brief.", quantization: "Q8_0" });
    await remove("llama");
  });
});

describe("a quantization that fails", () => {
  test.each([
    ["of what is quantized already", { source: "small", quantization: "Q8_0" }, /allow_requantize/],
    ["to a type that needs an importance matrix", { quantization: "IQ2_XS" }, /importance matrix/],
    ["to an unknown type", { quantization: "Q9" }, /not a quantization; choose one of/],
    ["of a model that is not there", { source: "nowhere" }, /not on disk/],
    ["under a name that is taken", { destination: "daybreak-mini" }, /already/],
  ])("%s is refused before it begins", async (_, changes, message) => {
    const body = { source, destination: "refused", quantization: "Q4_0", stream: true, ...changes };
    const answer = await post("/api/models/quantize", body);
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(answer.status).toBeLessThan(500);
    expect(await answer.json()).toMatchObject({ error: { message: expect.stringMatching(message) } });
  });

  test("of NaN weights ends with an error and leaves no files", async () => {
    const file = path.join(folder, "nan.gguf");
    const { metadata, tensors } = tinyLlama();
    const [first, ...others] = tensors;
    const values = new Float32Array(first!.shape.reduce((product, size) => product * size, 1)).fill(
      Number.NaN,
    );
    writeGguf(file, { metadata, tensors: [{ ...first!, data: { values } }, ...others] });
    const body = { source: file, destination: "nan", quantization: "Q8_0" };
    const answer = await post("/api/models/quantize", body);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { message: expect.stringMatching(/not numbers/) } });
  });

  test("is cancelled without files when the client disconnects, and the next one waits for it", async () => {
    const left = new AbortController();
    const body = { source: long, destination: "left", quantization: "IQ3_S", stream: true };
    const answer = await post("/api/models/quantize", body, left.signal);
    const second = await post("/api/models/quantize", { ...body, destination: "second" });
    expect(second.status).toBe(503);
    left.abort();
    await expect(answer.text()).rejects.toThrow(/abort/);
    await expect
      .poll(async () => (await post("/api/models/quantize", { ...body, source, quantization: "F16" })).status)
      .toBe(200);
    await remove("left");
    const gone = await fileOf("small");
    await remove("small");
    expect(() => readFileSync(gone)).toThrow("ENOENT");
  });
});
