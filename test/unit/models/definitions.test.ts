import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { tinyLlama, tinyLora, tinyProjector } from "../../support/tiny-models.ts";
import { SHIPPED_MODEL } from "../../support/engine-fixture.ts";
import { ALIAS, startModels } from "./service-fixture.ts";

const MINI = "daybreak-mini";

describe("a model made from a Modelfile", () => {
  it("is its base with settings of its own, and outlives a restart", async () => {
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

  it("brings its template, adapters and projector to the engine", async () => {
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

  it("brings its draft model, unless guesses are off, and guesses with what repeats where that is asked for", async () => {
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

  it("cannot have a draft model with other tokens, or a projector for one", async () => {
    const { models, userFile } = await startModels();
    const eyes = userFile("eyes.gguf", tinyProjector());
    for (const draft of [SHIPPED_MODEL, eyes])
      await expect(models.load({ alias: MINI, draft })).rejects.toMatchObject({ code: "invalid_model_file" });
  });

  it("may be made from another made one, whose settings shine through", async () => {
    const { models } = await startModels();
    const first = `FROM ${MINI}\nSYSTEM First.\nPARAMETER temperature 0.1\nPARAMETER top_k 5`;
    await models.create("first", first, {});
    const model = await models.create("second", "FROM first\nPARAMETER top_k 7\nCAPABILITY tools true", {});
    expect(model.settings).toMatchObject({ system: "First.", sampling: { temperature: 0.1, topK: 7 } });
    expect(model.capabilities.tools).toBe(true);
  });

  it("begins its chats with messages of its own, or with those of its base", async () => {
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

  it("cannot be made from itself, directly or around a corner", async () => {
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
  ])("is not made with %s", async (_what, modelfile, code) => {
    const { models } = await startModels();
    await expect(models.create("made", modelfile, {})).rejects.toMatchObject({ code });
    await expect(models.get("made")).rejects.toMatchObject({ code: "model_not_found" });
  });

  it("is not made with an adapter that is another kind of file, which is said", async () => {
    const { models, userFile } = await startModels();
    const file = userFile("model.gguf", tinyLlama());
    await expect(models.create("made", `FROM ${MINI}\nADAPTER ${file}`, {})).rejects.toMatchObject({
      code: "invalid_model_file",
      message: `${file} is not an adapter but a model that generates text.`,
    });
  });

  it("is made with the right digest", async () => {
    const { models, shippedDir } = await startModels();
    const bytes = readFileSync(path.join(shippedDir, "daybreak-mini.gguf"));
    const digest = createHash("sha256").update(bytes).digest("hex");
    await models.create("made", `FROM ${MINI}\nDIGEST sha256:${digest}`, {});
    expect((await models.load({ alias: "made" })).state).toBe("loaded");
  });

  it("stays inside the allowed folders with its files", async () => {
    const fixture = await startModels();
    const { models } = await fixture.restart({ allowed_dirs: [fixture.userDir] });
    const from = path.join(fixture.shippedDir, "daybreak-mini.gguf");
    await expect(models.create("made", `FROM ${from}`, {})).rejects.toMatchObject({
      code: "path_not_allowed",
    });
    await models.create("made", `FROM ${fixture.userFile("x.gguf")}`, {});
  });

  it("takes the place of an earlier one of its name, but of no other model", async () => {
    const { models } = await startModels();
    await models.create("made", `FROM ${MINI}`, {});
    const remade = await models.create("made", `FROM ${MINI}\nSYSTEM New.`, {});
    expect(remade.settings.system).toBe("New.");
    await expect(models.create(MINI, "FROM made", {})).rejects.toMatchObject({
      code: "model_exists",
    });
  });

  it.each(["hf:a/b", "/some/path"])("cannot be called %s", async (name) => {
    const { models } = await startModels();
    await expect(models.create(name, `FROM ${MINI}`, {})).rejects.toMatchObject({
      code: "invalid_model_name",
    });
  });
});

describe("a copy", () => {
  it("of a made model has its settings, and lives without it", async () => {
    const { models } = await startModels();
    await models.create("made", `FROM ${MINI}\nSYSTEM Be brief.`, {});
    await models.copy("made", "twin");
    await models.delete("made");
    expect((await models.get("twin")).settings.system).toBe("Be brief.");
  });

  it.each([
    ["a model that ships", MINI, MINI],
    ["a model of the hub", ALIAS, "hf:ada/tiny-GGUF:tiny.gguf"],
  ])("of %s is made from it", async (_what, source, from) => {
    const { models, hub } = await startModels();
    await hub.add("ada", "tiny-GGUF", "tiny.gguf");
    const copy = await models.copy(source, "twin");
    expect(copy).toMatchObject({ alias: "twin", source: { kind: "modelfile", base: from } });
    expect(await models.modelfile("twin")).toBe(`FROM ${from}\n`);
  });

  it("of a user's own file does not need its entry", async () => {
    const { models, userFile } = await startModels();
    await models.load({ alias: "mine", path: userFile("x.gguf") });
    await models.copy("mine", "twin");
    await models.delete("mine");
    expect((await models.get("twin")).gguf.name).toBe("x.gguf");
  });

  it("does not take a name that is taken", async () => {
    const { models } = await startModels();
    await expect(models.copy(MINI, MINI)).rejects.toMatchObject({ code: "model_exists" });
  });
});
