import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { NO_SETTINGS } from "../../../src/models/registry/model-record.ts";
import { tinyLora, tinyProjector } from "../../support/tiny-models.ts";
import { ALIAS, modelfile, startModels } from "./service-fixture.ts";

const MINI = "daybreak-mini";

describe("a model made from a Modelfile", () => {
  it("is its base with settings of its own, and outlives a restart", async () => {
    const fixture = await startModels();
    const settings = {
      ...NO_SETTINGS,
      system: "Be brief.",
      contextSize: 300,
      sampling: { temperature: 0.1 },
    };
    await fixture.models.create("made", modelfile({ from: MINI, settings }), {});
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
    const definition = {
      from: MINI,
      settings: {
        ...NO_SETTINGS,
        template: "{{ messages }}{{ tools }}",
        flashAttention: "true" as const,
        gpuLayers: 3,
      },
      adapters: [{ path: adapter, scale: 0.5 }],
      projector: "mmproj.gguf",
    };
    const model = await models.create("made", modelfile(definition), { baseFolder: userDir });
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

  it("may be made from another made one, whose settings shine through", async () => {
    const { models } = await startModels();
    const first = { ...NO_SETTINGS, system: "First.", sampling: { temperature: 0.1, topK: 5 } };
    const second = { ...NO_SETTINGS, sampling: { topK: 7 }, capabilities: { tools: true } };
    await models.create("first", modelfile({ from: MINI, settings: first }), {});
    const model = await models.create("second", modelfile({ from: "first", settings: second }), {});
    expect(model.settings).toMatchObject({ system: "First.", sampling: { temperature: 0.1, topK: 7 } });
    expect(model.capabilities.tools).toBe(true);
  });

  it("cannot be made from itself, directly or around a corner", async () => {
    const { models, hub } = await startModels();
    await hub.add("ada", "tiny-GGUF", "tiny.gguf");
    await models.create("a", modelfile({ from: MINI }), {});
    await models.create("b", modelfile({ from: "a" }), {});
    await expect(models.create("a", modelfile({ from: "b" }), {})).rejects.toMatchObject({
      code: "invalid_modelfile",
    });
    await expect(models.create("a", modelfile({ from: "a" }), {})).rejects.toMatchObject({
      code: "invalid_modelfile",
    });
  });

  it.each([
    ["a base that is not on disk", { from: ALIAS }, "model_not_found"],
    ["a base file that does not exist", { from: "/no/such.gguf" }, "model_file_not_found"],
    [
      "an adapter that does not exist",
      { from: MINI, adapters: [{ path: "/no.gguf", scale: 1 }] },
      "model_file_not_found",
    ],
    ["a wrong digest", { from: MINI, digest: "0".repeat(64) }, "checksum_mismatch"],
  ])("is not made with %s", async (_what, definition, code) => {
    const { models } = await startModels();
    await expect(models.create("made", modelfile(definition), {})).rejects.toMatchObject({ code });
    await expect(models.get("made")).rejects.toMatchObject({ code: "model_not_found" });
  });

  it("is made with the right digest", async () => {
    const { models, shippedDir } = await startModels();
    const bytes = readFileSync(path.join(shippedDir, "daybreak-mini.gguf"));
    const digest = createHash("sha256").update(bytes).digest("hex");
    await models.create("made", modelfile({ from: MINI, digest }), {});
    expect((await models.load({ alias: "made" })).state).toBe("loaded");
  });

  it("stays inside the allowed folders with its files", async () => {
    const fixture = await startModels();
    const { models } = await fixture.restart({ allowed_dirs: [fixture.userDir] });
    const from = path.join(fixture.shippedDir, "daybreak-mini.gguf");
    await expect(models.create("made", modelfile({ from }), {})).rejects.toMatchObject({
      code: "path_not_allowed",
    });
    await models.create("made", modelfile({ from: fixture.userFile("x.gguf") }), {});
  });

  it("takes the place of an earlier one of its name, but of no other model", async () => {
    const { models } = await startModels();
    await models.create("made", modelfile({ from: MINI }), {});
    const settings = { ...NO_SETTINGS, system: "New." };
    expect((await models.create("made", modelfile({ from: MINI, settings }), {})).settings.system).toBe(
      "New.",
    );
    await expect(models.create(MINI, modelfile({ from: "made" }), {})).rejects.toMatchObject({
      code: "model_exists",
    });
  });

  it.each(["hf:a/b", "/some/path"])("cannot be called %s", async (name) => {
    const { models } = await startModels();
    await expect(models.create(name, modelfile({ from: MINI }), {})).rejects.toMatchObject({
      code: "invalid_model_name",
    });
  });
});

describe("a copy", () => {
  it("of a made model has its settings, and lives without it", async () => {
    const { models } = await startModels();
    const settings = { ...NO_SETTINGS, system: "Be brief." };
    await models.create("made", modelfile({ from: MINI, settings }), {});
    await models.copy("made", "twin");
    await models.delete("made");
    expect((await models.get("twin")).settings.system).toBe("Be brief.");
  });

  it.each([
    ["a model that ships", MINI, { from: MINI }],
    ["a model of the hub", ALIAS, { from: "hf:ada/tiny-GGUF:tiny.gguf" }],
  ])("of %s is made from it", async (_what, source, expected) => {
    const { models, hub } = await startModels();
    await hub.add("ada", "tiny-GGUF", "tiny.gguf");
    const copy = await models.copy(source, "twin");
    expect(copy).toMatchObject({ alias: "twin", source: { kind: "modelfile", base: expected.from } });
    expect(JSON.parse(await models.modelfile("twin"))).toMatchObject(expected);
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
