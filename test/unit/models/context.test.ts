import { describe, expect, it } from "vitest";
import { ServiceError } from "../../../src/errors/service-error.ts";
import { tinyBert, tinyLlama } from "../../support/tiny-models.ts";
import type { LoadOptions } from "../../../src/models/models.ts";
import { type FixtureOptions, startModels } from "./service-fixture.ts";

const MIB = 1024 ** 2;

/** Estimates an engine at 10 MiB, and this many KiB per token of context. */
const withCache =
  (kib: number): NonNullable<FixtureOptions["estimateMemory"]> =>
  (_gguf, { contextSize }) =>
    10 * MIB + contextSize * kib * 1024;

/** Returns the context of a model that was trained for a number of tokens. */
async function loaded(trained: number, options: FixtureOptions = {}, load: Partial<LoadOptions> = {}) {
  const { models, engines, userFile } = await startModels(options);
  const path = userFile("a.gguf", tinyLlama({ context: trained }));
  const { contextSize, contextSource } = await models.load({ alias: "a", path, ...load });
  return { contextSize, contextSource, spec: engines.last.spec };
}

describe("an automatic context", () => {
  it.each([
    [2048, 2048, "trained"],
    [8192, 8192, "trained"],
    [32_768, 32_768, "trained"],
    [131_072, 32_768, "automatic"],
  ])("of a model trained for %i tokens has %i", async (trained, contextSize, contextSource) => {
    expect(await loaded(trained)).toMatchObject({ contextSize, contextSource });
  });

  // A larger context may take half of what an engine with 4096 tokens leaves of 100 MiB.
  it.each([
    [1, 32_768],
    [2, 16_384],
    [4, 8192],
    [8, 4096],
  ])(
    "with %i KiB per token has %i tokens, which fit into half of the free memory",
    async (kib, contextSize) => {
      const found = await loaded(131_072, { estimateMemory: withCache(kib) });
      expect(found).toMatchObject({
        contextSize,
        contextSource: contextSize === 32_768 ? "automatic" : "memory",
      });
    },
  );

  it("is the smallest one if an engine can hold no more", async () => {
    const found = await loaded(131_072, {
      estimateMemory: (_gguf, { contextSize }) => {
        if (contextSize > 4096) throw new ServiceError("insufficient_memory", "Too much.");
        return 10 * MIB;
      },
    });
    expect(found).toMatchObject({ contextSize: 4096, contextSource: "memory" });
  });

  it("moves no layers off the GPU", async () => {
    const found = await loaded(131_072, {
      offloadLayers: async (_gguf, spec) => ({
        spec: { ...spec, gpuLayers: spec.contextSize > 8192 ? 2 : -1 },
      }),
    });
    expect(found).toMatchObject({ contextSize: 8192, spec: { gpuLayers: -1 } });
  });

  it("does not enlarge the context of an encoder, whose batch holds a full text", async () => {
    const { models, engines, userFile } = await startModels();
    await models.load({ alias: "bert", path: userFile("bert.gguf", tinyBert({ context: 32_768 })) });
    expect(engines.last.spec).toMatchObject({ contextSize: 4096, batchSize: 4096 });
  });

  it("is reported for an unloaded model", async () => {
    const { models, userFile } = await startModels({ estimateMemory: withCache(4) });
    const path = userFile("a.gguf", tinyLlama({ context: 131_072 }));
    await models.load({ alias: "a", path });
    await models.unload("a");
    expect(await models.get("a")).toMatchObject({ contextSize: 8192, contextSource: "memory" });
  });

  it("counts memory of idle models as free only if they may be evicted", async () => {
    for (const [autoLoad, contextSize] of [
      [false, 8192],
      [true, 32_768],
    ] as const) {
      const { models, engines, userFile } = await startModels({
        config: { auto_load: autoLoad },
        estimateMemory: (gguf, spec) => (gguf.contextLength === 512 ? 70 * MIB : withCache(1)(gguf, spec)),
      });
      await models.load({ alias: "b", path: userFile("b.gguf", tinyLlama({ context: 512 })) });
      await models.load({ alias: "a", path: userFile("a.gguf", tinyLlama({ context: 131_072 })) });
      expect(engines.last.spec.contextSize).toBe(contextSize);
    }
  });

  it("falls back to a smaller one if two loads were planned for the same memory", async () => {
    const { models, userFile } = await startModels({
      config: { memory_budget: 60 * MIB, auto_load: false },
      estimateMemory: withCache(1),
    });
    const load = (alias: string) =>
      models.load({ alias, path: userFile(`${alias}.gguf`, tinyLlama({ context: 131_072 })) });
    const sizes = (await Promise.all(["a", "b", "c"].map(load))).map(({ contextSize }) => contextSize);
    expect(sizes.toSorted((one, other) => one - other)[0]).toBe(4096);
  });

  it("has batches as large as those of the base context, as far as memory allows", async () => {
    const large = await loaded(131_072);
    const usual = await loaded(131_072, {}, { contextSize: 4096 });
    expect(large.spec.batchSize).toBe(usual.spec.batchSize);
  });
});

describe("a context size that is set", () => {
  const scarce = { estimateMemory: withCache(8) };

  it("in the request is used even if it takes nearly all memory", async () => {
    const found = await loaded(131_072, scarce, { contextSize: 11_000 });
    expect(found).toMatchObject({ contextSize: 11_000, contextSource: "request" });
  });

  it("in the configuration is limited to the context the model was trained for", async () => {
    const config = { context_size: 6000 };
    expect(await loaded(131_072, { config })).toMatchObject({
      contextSize: 6000,
      contextSource: "configuration",
    });
    expect(await loaded(2048, { config })).toMatchObject({ contextSize: 2048, contextSource: "trained" });
  });

  it("in the Modelfile precedes the configuration and the caller's default", async () => {
    const { models, userFile } = await startModels({ config: { context_size: 6000 } });
    const file = userFile("a.gguf", tinyLlama({ context: 131_072 }));
    await models.create("own", `FROM ${file}\nPARAMETER num_ctx 9000`, {});
    const model = await models.load({ alias: "own", fallbackContext: 4096 });
    expect(model).toMatchObject({ contextSize: 9000, contextSource: "modelfile" });
  });

  it("as the caller's default is used only if no other source sets one", async () => {
    const fallback = { fallbackContext: 4096 };
    expect(await loaded(131_072, {}, fallback)).toMatchObject({
      contextSize: 4096,
      contextSource: "default",
    });
    expect(await loaded(2048, {}, fallback)).toMatchObject({ contextSize: 2048, contextSource: "trained" });
    const config = { context_size: 6000 };
    expect(await loaded(131_072, { config }, fallback)).toMatchObject({ contextSize: 6000 });
  });
});
