import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { tinyLlama, tinyLora, tinyProjector } from "../../support/tiny-models.ts";
import { SHIPPED_MODEL } from "../../support/engine-fixture.ts";
import { ALIAS, startModels } from "./service-fixture.ts";

const MINI = "daybreak-mini";

describe("a model created from a Modelfile", () => {
  it("has its base with its own settings, and survives a restart", async () => {
    const fixture = await startModels();
    const modelfile = `FROM ${MINI}\nSYSTEM Be brief.\nPARAMETER num_ctx 300\nPARAMETER temperature 0.1`;
    await fixture.models.create("made", modelfile, {});
    expect(fixture.events).toEqual([{ type: "model-created", model: "made" }]);

    const { models, engines } = await fixture.restart();

    expect(await models.get("made")).toMatchObject({
      source: { kind: "modelfile", base: MINI },
      contextSize: 300,
      settings: { system: "Be brief.", sampling: { temperature: 0.1 } },
    });
    await models.load({ alias: "made" });
    expect(engines.last.spec.contextSize).toBe(300);
  });

  it("has its settings in one order, from which Ollama's API computes the model's digest", async () => {
    const { models } = await startModels();
    const lines = ["MESSAGE user hi", "PARAMETER speculation ngram", "PARAMETER repetition_guard true"];
    const { settings } = await models.create("made", [`FROM ${MINI}`, ...lines].join("\n"), {});
    expect(Object.keys(settings)).toEqual([
      "system",
      "template",
      "sampling",
      "maxTokens",
      "repetitionGuard",
      "stop",
      "contextSize",
      "gpuLayers",
      "load",
      "speculation",
      "thinking",
      "toolFormat",
      "capabilities",
      "messages",
    ]);
  });

  it("passes its template, adapters and projector to the engine", async () => {
    const { models, engines, userDir, userFile } = await startModels();
    const adapter = userFile("lora.gguf", tinyLora());
    userFile("mmproj.gguf", tinyProjector());
    const modelfile = [
      `FROM ${MINI}`,
      "TEMPLATE {{ messages }}{{ tools }}",
      "FLASH_ATTENTION true",
      "GPU_LAYERS 3",
      "ADAPTER lora.gguf 0.5",
      "VISION_PROJECTOR mmproj.gguf",
    ].join("\n");
    const model = await models.create("made", modelfile, { baseFolder: userDir });
    expect(model.capabilities).toMatchObject({ vision: true, tools: true });

    await models.load({ alias: "made" });

    expect(engines.last.spec).toMatchObject({
      chatTemplate: "{{ messages }}{{ tools }}",
      flashAttention: "true",
      gpuLayers: 3,
      adapters: [{ path: adapter, scale: 0.5 }],
      projectorFile: path.join(userDir, "mmproj.gguf"),
    });
  });

  it("passes its draft model to the engine unless speculation is off, and drafts ngrams if requested", async () => {
    const { models, engines, userDir, userFile } = await startModels();
    const draft = userFile("small.gguf", tinyLlama());
    await models.create("made", `FROM ${MINI}\nDRAFT small.gguf`, { baseFolder: userDir });
    await models.load({ alias: "made" });
    expect(engines.last.spec).toMatchObject({ draft: { path: draft }, guessTokens: 16 });
    await models.unload("made");
    await models.load({ alias: "made", speculation: "off" });
    expect(engines.last.spec.draft).toBeUndefined();
    expect(engines.last.spec.guessTokens).toBeUndefined();
    await models.load({ alias: MINI });
    expect(engines.last.spec.guessTokens).toBeUndefined();
    await models.unload(MINI);
    await models.load({ alias: MINI, speculation: "ngram" });
    expect(engines.last.spec).toMatchObject({ guessTokens: 16 });
  });

  it("rejects a draft model with another vocabulary, or a projector as draft model", async () => {
    const { models, userFile } = await startModels();
    const eyes = userFile("eyes.gguf", tinyProjector());
    for (const draft of [SHIPPED_MODEL, eyes])
      await expect(models.load({ alias: MINI, draft })).rejects.toMatchObject({ code: "invalid_model_file" });
  });

  it("inherits the settings of a created model that is its base", async () => {
    const { models } = await startModels();
    const first = `FROM ${MINI}\nSYSTEM First.\nPARAMETER temperature 0.1\nPARAMETER top_k 5`;
    await models.create("first", first, {});
    const model = await models.create("second", "FROM first\nPARAMETER top_k 7\nCAPABILITY tools true", {});
    expect(model.settings).toMatchObject({ system: "First.", sampling: { temperature: 0.1, topK: 7 } });
    expect(model.capabilities.tools).toBe(true);
  });

  it("begins chats with its own messages, or with those of its base", async () => {
    const { models } = await startModels();
    await models.create("first", `FROM ${MINI}\nMESSAGE user Hi.\nMESSAGE assistant Ho.`, {});
    const hiHo = [
      { role: "user", content: "Hi." },
      { role: "assistant", content: "Ho." },
    ];
    expect((await models.create("second", "FROM first", {})).settings.messages).toEqual(hiHo);
    const third = await models.create("third", "FROM first\nMESSAGE system Be brief.", {});
    expect(third.settings.messages).toEqual([{ role: "system", content: "Be brief." }]);
  });

  it("rejects a base that is created from it, directly or through another model", async () => {
    const { models, hub } = await startModels();
    await hub.add("ada", "tiny-GGUF", "tiny.gguf");
    await models.create("a", `FROM ${MINI}`, {});
    await models.create("b", "FROM a", {});
    await expect(models.create("a", "FROM b", {})).rejects.toMatchObject({
      code: "invalid_modelfile",
    });
    await expect(models.create("a", "FROM a", {})).rejects.toMatchObject({
      code: "invalid_modelfile",
    });
  });

  it.each([
    ["a base that is not on disk", `FROM ${ALIAS}`, "model_not_found"],
    ["a base file that does not exist", "FROM /no/such.gguf", "model_file_not_found"],
    ["an adapter that does not exist", `FROM ${MINI}\nADAPTER /no.gguf`, "model_file_not_found"],
    ["a wrong digest", `FROM ${MINI}\nDIGEST sha256:${"0".repeat(64)}`, "checksum_mismatch"],
    ["a directive that there is not", `FROM ${MINI}\nFORM x`, "invalid_modelfile"],
  ])("is not created with %s", async (_what, modelfile, code) => {
    const { models } = await startModels();
    await expect(models.create("made", modelfile, {})).rejects.toMatchObject({ code });
    await expect(models.get("made")).rejects.toMatchObject({ code: "model_not_found" });
  });

  it("is not created with another kind of file as adapter, and the error names the kind", async () => {
    const { models, userFile } = await startModels();
    const file = userFile("model.gguf", tinyLlama());
    await expect(models.create("made", `FROM ${MINI}\nADAPTER ${file}`, {})).rejects.toMatchObject({
      code: "invalid_model_file",
      message: `${file} is not an adapter but a model that generates text.`,
    });
  });

  it("is created if its digest matches", async () => {
    const { models, shippedDir } = await startModels();
    const bytes = readFileSync(path.join(shippedDir, "daybreak-mini.gguf"));
    const digest = createHash("sha256").update(bytes).digest("hex");
    await models.create("made", `FROM ${MINI}\nDIGEST sha256:${digest}`, {});
    expect((await models.load({ alias: "made" })).state).toBe("loaded");
  });

  it("rejects files outside of the allowed folders", async () => {
    const fixture = await startModels();
    const { models } = await fixture.restart({ allowed_dirs: [fixture.userDir] });
    const from = path.join(fixture.shippedDir, "daybreak-mini.gguf");
    await expect(models.create("made", `FROM ${from}`, {})).rejects.toMatchObject({
      code: "path_not_allowed",
    });
    await models.create("made", `FROM ${fixture.userFile("x.gguf")}`, {});
  });

  it("replaces a created model of the same name, but no other model", async () => {
    const { models } = await startModels();
    await models.create("made", `FROM ${MINI}`, {});
    const remade = await models.create("made", `FROM ${MINI}\nSYSTEM New.`, {});
    expect(remade.settings.system).toBe("New.");
    await expect(models.create(MINI, "FROM made", {})).rejects.toMatchObject({
      code: "model_exists",
    });
  });

  it.each(["hf:a/b", "/some/path"])("rejects the name %s", async (name) => {
    const { models } = await startModels();
    await expect(models.create(name, `FROM ${MINI}`, {})).rejects.toMatchObject({
      code: "invalid_model_name",
    });
  });
});

describe("copying", () => {
  it("a created model copies its settings, and the copy works without the original", async () => {
    const { models } = await startModels();
    await models.create("made", `FROM ${MINI}\nSYSTEM Be brief.`, {});
    await models.copy("made", "twin");
    await models.delete("made");
    expect((await models.get("twin")).settings.system).toBe("Be brief.");
  });

  it.each([
    ["a model that ships", MINI, MINI],
    ["a model of the hub", ALIAS, "hf:ada/tiny-GGUF:tiny.gguf"],
  ])("%s creates a model from it", async (_what, source, from) => {
    const { models, hub } = await startModels();
    await hub.add("ada", "tiny-GGUF", "tiny.gguf");
    const copy = await models.copy(source, "twin");
    expect(copy).toMatchObject({ alias: "twin", source: { kind: "modelfile", base: from } });
    expect(await models.modelfile("twin")).toBe(`FROM ${from}\n`);
  });

  it("a file loaded by path works without the entry of the original", async () => {
    const { models, userFile } = await startModels();
    await models.load({ alias: "mine", path: userFile("x.gguf") });
    await models.copy("mine", "twin");
    await models.delete("mine");
    expect((await models.get("twin")).gguf.name).toBe("x.gguf");
  });

  it("to a name that is taken is rejected", async () => {
    const { models } = await startModels();
    await expect(models.copy(MINI, MINI)).rejects.toMatchObject({ code: "model_exists" });
  });
});
