import { once } from "node:events";
import { readdirSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import type { QuantizeTensors } from "../../../../src/engine/quantize/quantize-tensors.ts";
import { ServiceError } from "../../../../src/errors/service-error.ts";
import { bytesOf, paddingOf } from "../../../../src/engine/quantize/quantize-job.ts";
import type { QuantizedModel, QuantizeProgress } from "../../../../src/models/quantize/quantize-options.ts";
import { tinyLlama } from "../../../support/tiny-models.ts";
import { type Fixture, startModels } from "../service-fixture.ts";

/** Yields zeros in place of the quantized tensors. */
const zeros: QuantizeTensors = async function* zeros({ tensors, alignment }, signal) {
  for (const { weights, to } of tensors) {
    signal.throwIfAborted();
    const bytes = bytesOf(weights, to);
    yield new Uint8Array(bytes + paddingOf(bytes, alignment));
  }
};

async function* ends(): AsyncGenerator<Uint8Array, void, undefined> {
  yield new Uint8Array(1);
}

async function* never(): AsyncGenerator<Uint8Array, void, undefined> {
  for (;;) yield new Uint8Array(1024);
}

interface Settings {
  readonly alias?: string;
  readonly modelfile?: string;
  readonly onProgress?: (progress: QuantizeProgress) => void;
  readonly signal?: AbortSignal;
}

async function quantize({ models, userFile }: Fixture, settings: Settings = {}): Promise<QuantizedModel> {
  const { alias = "small", onProgress = () => {}, signal = new AbortController().signal } = settings;
  const { modelfile = `FROM ${userFile("big.gguf", tinyLlama())}` } = settings;
  return await models.quantize(
    { alias, modelfile, quantization: "Q8_0", mayRequantize: false },
    onProgress,
    signal,
  );
}

function blobs({ cacheDir }: Fixture): string[] {
  return readdirSync(path.join(cacheDir, "blobs"));
}

describe("quantizing a model", () => {
  test("creates a model with the settings of the original", async () => {
    const fixture = await startModels({ quantizeTensors: zeros });
    const { models, userFile } = fixture;
    await models.create("big", `FROM ${userFile("a.gguf", tinyLlama())}\nSYSTEM Be brief.`, {});
    const seen: QuantizeProgress[] = [];
    const modelfile = "FROM big\nPARAMETER top_k 3";
    const { model } = await quantize(fixture, { modelfile, onProgress: (step) => seen.push(step) });
    expect(model).toMatchObject({
      alias: "small",
      gguf: { quantization: "Q8_0" },
      settings: { system: "Be brief.", sampling: { topK: 3 } },
    });
    const { fileSize } = model.gguf;
    expect(seen.at(-1)).toEqual({ from: "F32", to: "Q8_0", completedBytes: fileSize, totalBytes: fileSize });
    expect(fixture.events.at(-1)).toEqual({ type: "model-created", model: "small" });
  });

  test("keeps the draft model", async () => {
    const fixture = await startModels({ quantizeTensors: zeros });
    const { models, userFile } = fixture;
    const draft = userFile("draft.gguf", tinyLlama());
    await models.create("big", `FROM ${userFile("a.gguf", tinyLlama())}\nDRAFT ${draft}`, {});
    const { model } = await quantize(fixture, { modelfile: "FROM big" });
    expect(model.draft).toBe(draft);
  });

  test("reports a missing original as such, not as a missing base", async () => {
    const fixture = await startModels({ quantizeTensors: zeros });
    await expect(quantize(fixture, { modelfile: "FROM nope" })).rejects.toMatchObject({
      code: "model_not_found",
      message: expect.stringMatching(/^The model to quantize, nope, is not on disk; "daybreak list"/),
    });
  });

  test("deletes the file when the model is deleted", async () => {
    const fixture = await startModels({ quantizeTensors: zeros });
    await quantize(fixture);
    await fixture.models.copy("small", "twin");
    await fixture.models.delete("small");
    expect(blobs(fixture)).toHaveLength(1);
    await fixture.models.delete("twin");
    expect(blobs(fixture)).toEqual([]);
  });

  test.each([
    ["too few bytes", ends],
    ["too many bytes", never],
  ])("leaves no file if the process returns %s", async (_, quantizeTensors) => {
    const fixture = await startModels({ quantizeTensors });
    await expect(quantize(fixture)).rejects.toMatchObject({ code: "quantization_failed" });
    expect(blobs(fixture)).toEqual([]);
    await expect(fixture.models.get("small")).rejects.toMatchObject({ code: "model_not_found" });
  });

  test("rejects a second one, but not after the first was cancelled", async () => {
    const left = new AbortController();
    const fixture = await startModels({
      quantizeTensors: async function* untilLeft(job, signal) {
        if (!left.signal.aborted) await once(signal, "abort");
        yield* zeros(job, signal);
      },
    });
    const begun = Promise.withResolvers<void>();
    const first = quantize(fixture, { signal: left.signal, onProgress: () => begun.resolve() });
    await begun.promise;
    await expect(quantize(fixture, { alias: "second" })).rejects.toMatchObject({
      code: "overloaded",
      retryAfterSecs: 30,
    });
    left.abort(new Error("left"));
    await expect(first).rejects.toThrow("left");
    expect(blobs(fixture)).toEqual([]);
    expect((await quantize(fixture)).model.alias).toBe("small");
  });

  test("is rejected before it begins if no engine could load the result", async () => {
    const fixture = await startModels({
      quantizeTensors: zeros,
      estimateMemory: ({ quantization }) => {
        if (quantization === "F32") return 1;
        throw new ServiceError("insufficient_memory", "It needs more than any engine can have.");
      },
    });
    await expect(quantize(fixture)).rejects.toMatchObject({ code: "insufficient_memory" });
    expect(readdirSync(fixture.cacheDir)).not.toContain("blobs");
  });

  test("is rejected if there is too little disk space", async () => {
    const fixture = await startModels({ quantizeTensors: zeros, measureSpace: async () => 1e6 });
    await expect(quantize(fixture)).rejects.toMatchObject({
      code: "insufficient_disk",
      message: expect.stringContaining("0.00 GB are free"),
    });
  });
});
