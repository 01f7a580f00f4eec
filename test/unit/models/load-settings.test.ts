import { describe, expect, it } from "vitest";
import { loadConfig } from "../../../src/config/load-config.ts";
import { checkLoadSettings } from "../../../src/models/loading/choose-settings.ts";
import { tinyBert, tinyLlama } from "../../support/tiny-models.ts";
import { startModels } from "./service-fixture.ts";

const WIDE = { headWidths: { key: 64, value: 64 }, purpose: "generate" } as const;

describe("load settings", () => {
  it.each([
    [{ cacheTypeV: "q8_0", flashAttention: "false" }, WIDE, /^cache_type_v: q8_0 needs flash attention/],
    [{ cacheTypeK: "q4_0" }, { ...WIDE, headWidths: { key: 80, value: 64 } }, /^cache_type_k: .* have 80/],
    [{ cacheTypeV: "q5_1" }, { ...WIDE, headWidths: { key: 64, value: 16 } }, /^cache_type_v: .* have 16/],
    [
      { cacheTypeK: "q8_0", contextShift: true },
      { ...WIDE, headWidths: { key: 96, value: 96 } },
      /^context_shift: with quantized keys .* have 96/,
    ],
    [
      { cacheTypeK: "q8_0", cacheReuse: 1 },
      { ...WIDE, headWidths: { key: 32, value: 32 } },
      /^cache_reuse: with quantized keys .* have 32/,
    ],
    [{ ropeScaling: "none", ropeFreqScale: 0.5 }, WIDE, /^rope_freq_scale: has no effect/],
    [{ ropeScaling: "linear", yarnBetaFast: 8 }, WIDE, /^yarn_beta_fast: has no effect/],
    [{ pooling: "mean" }, { ...WIDE, purpose: "rerank" }, /^pooling: cannot be set for a reranker/],
  ] as const)("reject %j for a model with %j", (settings, model, message) => {
    expect(() => checkLoadSettings(settings, model)).toThrow(message);
  });

  it.each([
    { cacheTypeK: "q8_0", flashAttention: "false" },
    { cacheTypeV: "q8_0" },
    { cacheTypeK: "q8_0", contextShift: true, cacheReuse: 0 },
    { cacheTypeV: "f32", flashAttention: "false" },
    { yarnOrigCtx: 4096 },
    { ropeScaling: "none", ropeFreqScale: 1 },
  ] as const)("accept %j", (settings) => {
    expect(() => checkLoadSettings(settings, WIDE)).not.toThrow();
  });

  it("come from the load, then the Modelfile, then its base, then the configuration", async () => {
    const { models, engines, userFile } = await startModels({
      engineConfig: {
        cache_type_k: "q4_0",
        cache_type_v: "q4_0",
        num_keep: 1,
        yarn_orig_ctx: 99,
        pooling: "cls",
      },
    });
    await models.load({ alias: "base", path: userFile("base.gguf", tinyLlama({ heads: 2, kvHeads: 1 })) });
    const written =
      "PARAMETER cache_type_v q5_0\nPARAMETER num_keep 2\nPARAMETER yarn_orig_ctx 77\nFROM base";
    await models.create("middle", written, {});
    await models.create("made", "FROM middle\nPARAMETER num_keep 3\nPARAMETER yarn_orig_ctx 55", {});
    const { loadSettings } = await models.load({ alias: "made", load: { yarnOrigCtx: 33 } });
    const expected = { cacheTypeK: "q4_0", cacheTypeV: "q5_0", numKeep: 3, yarnOrigCtx: 33, pooling: "cls" };
    expect(engines.last.spec).toMatchObject(expected);
    expect(loadSettings).toMatchObject(expected);
  });

  it("are checked when a model is created", async () => {
    const { models } = await startModels();
    const modelfile = "FROM daybreak-mini\nFLASH_ATTENTION false\nPARAMETER cache_type_v q8_0";
    await expect(models.create("made", modelfile, {})).rejects.toMatchObject({
      code: "invalid_parameter",
      param: "cache_type_v",
    });
  });

  it("with a context shift give slots separate contexts, and a single slot if those take too much memory", async () => {
    const { models, engines, userFile } = await startModels();
    const load = { contextShift: true };
    await models.load({ alias: "small", path: userFile("small.gguf"), load });
    expect(engines.last.spec).toMatchObject({ contextShift: true, sharedContext: false, slots: 4 });
    const contextSize = 4_000_000;
    await models.load({ alias: "large", path: userFile("large.gguf"), load, contextSize });
    expect(engines.last.spec).toMatchObject({ contextShift: true, sharedContext: false, slots: 1 });
  });

  it("ignore a context shift for an encoder", async () => {
    const { models, engines, userFile } = await startModels({ engineConfig: { context_shift: true } });
    await models.load({ alias: "bert", path: userFile("bert.gguf", tinyBert()) });
    expect(engines.last.spec).toMatchObject({ contextShift: false });
  });

  it("with RoPE scaling extend the context that a model is loaded with", async () => {
    const { models, userFile, warnings } = await startModels();
    const path = userFile("a.gguf", tinyLlama({ context: 1024 }));
    const model = await models.load({ alias: "a", path, load: { ropeScaling: "yarn", ropeFreqScale: 0.25 } });
    expect(model.contextSize).toBe(4096);
    expect(warnings).toEqual([]);
  });

  it("take speculation from the load, then the Modelfile, then the configuration", async () => {
    const { models, engines } = await startModels();
    await models.create("guessing", "FROM daybreak-mini\nPARAMETER speculation ngram", {});
    expect(await models.get("guessing")).toMatchObject({ speculation: "ngram" });
    expect(await models.load({ alias: "guessing" })).toMatchObject({ speculation: "ngram" });
    expect(engines.last.spec.guessTokens).toBe(16);
    await models.unload("guessing");
    expect(await models.load({ alias: "guessing", speculation: "off" })).toMatchObject({
      speculation: "off",
    });
    expect(engines.last.spec.guessTokens).toBeUndefined();
    expect((await models.load({ alias: "daybreak-mini" })).speculation).toBeUndefined();
    expect(await models.modelfile("guessing")).toContain('PARAMETER speculation "ngram"');
    await expect(
      models.create("wrong", "FROM daybreak-mini\nPARAMETER speculation always", {}),
    ).rejects.toMatchObject({ code: "invalid_modelfile", message: expect.stringContaining("ngram") });
  });

  it("accept fractional numbers in environment variables", () => {
    const env = { SERVICE_ENGINE_ROPE_FREQ_SCALE: "0.25", XDG_CONFIG_HOME: "/nowhere" };
    const { engine } = loadConfig({ env, platform: "linux" }).config;
    expect(engine.rope_freq_scale).toBe(0.25);
    const wrong = { ...env, SERVICE_ENGINE_ROPE_FREQ_SCALE: "0.25x" };
    expect(() => loadConfig({ env: wrong, platform: "linux" })).toThrow(/rope_freq_scale/);
  });
});
