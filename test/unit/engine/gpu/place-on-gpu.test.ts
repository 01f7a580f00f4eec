import { describe, expect, test } from "vitest";
import { GpuFinder, type GpuMode } from "../../../../src/engine/gpu/gpu-finder.ts";
import { gpuBytesPerLayer, shareOnCpu } from "../../../../src/engine/gpu/gpu-memory.ts";
import { placeOnGpu } from "../../../../src/engine/gpu/place-on-gpu.ts";
import { engineSpec } from "../../../support/engine-fixture.ts";
import { card } from "./adapters.ts";

const model = { blockCount: 3, fileSize: 4_000_000, kvBytesPerToken: 1000 };
const spec = engineSpec("/m.gguf", { contextSize: 1000 });
const perLayer = gpuBytesPerLayer(model, spec);
const device = { backend: card.backend, name: card.name };

function finder(mode: GpuMode, adapters = [card], sandbox = false): GpuFinder {
  return new GpuFinder({ mode, powerPreference: "high-performance", sandbox }, async () => ({
    adapters,
    problem: "No loader.",
  }));
}

describe("where a model goes", () => {
  test.each<[GpuMode, number | undefined, number]>([
    ["auto", undefined, -1],
    ["auto", -1, -1],
    ["auto", 4, -1],
    ["auto", 100, -1],
    ["auto", 2, 2],
    ["require", undefined, -1],
    ["off", undefined, 0],
    ["auto", 0, 0],
    ["require", 0, 0],
  ])("with a GPU, mode %s and %s layers wished: %i", async (mode, wished, layers) => {
    const placed = await placeOnGpu(finder(mode), spec, model, wished, 0);
    expect(placed.spec).toEqual(
      layers === 0 ? { ...spec, gpuLayers: 0 } : { ...spec, gpuLayers: layers, gpu: device },
    );
    expect(placed.warning).toBeUndefined();
  });

  test("without one it stays on the CPU, with a warning to who asked for layers", async () => {
    expect(await placeOnGpu(finder("auto", []), spec, model, undefined, 0)).toEqual({ spec });
    expect(await placeOnGpu(finder("auto", []), spec, model, 3, 0)).toEqual({
      spec,
      warning: expect.stringContaining("No loader."),
    });
    expect(await placeOnGpu(finder("off"), spec, model, 3, 0)).toEqual({
      spec,
      warning: expect.stringContaining("gpu.mode"),
    });
    expect(await placeOnGpu(finder("auto", [card], true), spec, model, -1, 0)).toEqual({
      spec,
      warning: expect.stringContaining("Sandbox"),
    });
  });

  test("a GPU that is required and not there is an error", async () => {
    await expect(placeOnGpu(finder("require", []), spec, model, undefined, 0)).rejects.toMatchObject({
      code: "gpu_unavailable",
      message: expect.stringContaining("No loader."),
    });
  });

  test("as many layers as fit into the memory that a model may use, with a warning", async () => {
    const room = perLayer * 3 - 1;
    const { spec: placed, warning } = await placeOnGpu(finder("auto"), spec, model, undefined, room);
    expect(placed).toMatchObject({ gpuLayers: 2, gpu: device });
    expect(warning).toContain("Only 2 of its 4 layers");
    expect(await placeOnGpu(finder("auto"), spec, model, 2, room)).toMatchObject({ spec: { gpuLayers: 2 } });
    expect((await placeOnGpu(finder("auto"), spec, model, -1, perLayer - 1)).spec).toEqual(spec);
    await expect(placeOnGpu(finder("require"), spec, model, undefined, room)).rejects.toMatchObject({
      code: "insufficient_memory",
    });
  });
});

test("the layers of a GPU are not in the engine's own memory", () => {
  expect(shareOnCpu(model, { gpuLayers: -1, gpu: device })).toBe(0);
  expect(shareOnCpu(model, { gpuLayers: 1, gpu: device })).toBe(0.75);
  expect(shareOnCpu(model, { gpuLayers: 0, gpu: device })).toBe(1);
  expect(shareOnCpu(model, { gpuLayers: -1 })).toBe(1);
});
