import { unlink } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { writeGguf } from "../../support/gguf-writer.ts";
import { CHATML_TEMPLATE, tinyBert, tinyLlama, tinyLora, tinyProjector } from "../../support/tiny-models.ts";
import { ALIAS, startModels } from "./service-fixture.ts";

describe("the models on disk", () => {
  it("are the shipped and created ones, files loaded by path, and those of the hub cache", async () => {
    const { models, hub, userFile } = await startModels();
    await hub.add("ada", "tiny-GGUF", "tiny.gguf");
    await hub.add("bob", "other-GGUF", "other.gguf");
    await models.load({ alias: "mine", path: userFile("mine.gguf") });
    await models.create("made", `FROM ${ALIAS}`, {});

    const list = await models.list();

    expect(list.map(({ alias, source, state }) => [alias, source.kind, state])).toEqual([
      ["daybreak-mini", "shipped", "available"],
      ["hf:bob/other-GGUF:other.gguf", "hub", "available"],
      ["made", "modelfile", "available"],
      ["mine", "file", "loaded"],
      [ALIAS, "hub", "available"],
    ]);
  });

  it("are found by alias, with or without :latest, by spec and by path", async () => {
    const { models, hub, shippedDir } = await startModels();
    await hub.add("ada", "tiny-GGUF", "tiny.gguf");

    for (const name of [ALIAS, "hf:ada/tiny-GGUF", "hf:ada/tiny-GGUF:tiny.gguf"]) {
      expect((await models.get(name)).alias).toBe(ALIAS);
    }
    for (const name of [
      "daybreak-mini",
      "daybreak-mini:latest",
      path.join(shippedDir, "daybreak-mini.gguf"),
    ]) {
      expect((await models.get(name)).alias).toBe("daybreak-mini");
    }
  });

  it.each([
    ["nothing", "model_not_found", /No model "nothing"/],
    [ALIAS, "model_not_found", /download it/],
    ["hf:no/where", "model_not_found", /download it/],
    ["toString", "model_not_found", /No model/],
    ["constructor", "model_not_found", /No model/],
    ["__proto__", "invalid_model_name", /begins with a letter or digit/],
    ["../../etc/passwd", "invalid_model_name", /must end in \.gguf/],
  ])("do not include %s", async (name, code, message) => {
    const { models } = await startModels();
    await expect(models.get(name)).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
  });

  it("do not include projectors, adapters and other files", async () => {
    const { models, shippedDir, hub } = await startModels();
    writeGguf(path.join(shippedDir, "lora.gguf"), tinyLora());
    await hub.add("ada", "tiny-GGUF", "projector.gguf", tinyProjector());

    expect((await models.list()).map(({ alias }) => alias)).toEqual(["daybreak-mini"]);
  });

  it("prefer a file loaded by path to a hub alias of the same name", async () => {
    const { models, hub, userFile } = await startModels();
    await models.load({ alias: ALIAS, path: userFile("own.gguf") });
    await hub.add("ada", "tiny-GGUF", "tiny.gguf");

    expect((await models.get(ALIAS)).source.kind).toBe("file");
    expect((await models.list()).map(({ alias }) => alias)).toContain("hf:ada/tiny-GGUF:tiny.gguf");
  });

  it("include loaded models whose file has been deleted, which can be unloaded", async () => {
    const { models, userFile } = await startModels();
    const file = userFile("mine.gguf");
    await models.load({ alias: "mine", path: file });
    await unlink(file);

    expect((await models.list()).map(({ alias }) => alias)).toContain("mine");
    await models.unload("mine");
    expect((await models.list()).map(({ alias }) => alias)).not.toContain("mine");
    await models.delete("mine");
  });

  it("report their capabilities", async () => {
    const { models, userFile } = await startModels();
    const plain = await models.load({ alias: "plain", path: userFile("plain.gguf") });
    expect(plain.capabilities).toEqual({
      vision: false,
      audio: false,
      tools: false,
      thinking: false,
      json: true,
    });

    const able = await models.load({
      alias: "able",
      path: userFile(
        "able.gguf",
        tinyLlama({ chatTemplate: `${CHATML_TEMPLATE}{% if tools and enable_thinking %}` }),
      ),
      mmproj: userFile("mmproj.gguf", tinyProjector()),
    });
    expect(able.capabilities).toEqual({
      vision: true,
      audio: false,
      tools: true,
      thinking: true,
      json: true,
    });

    const embedder = await models.load({ alias: "embedder", path: userFile("bert.gguf", tinyBert()) });
    expect(embedder.capabilities).toEqual({
      vision: false,
      audio: false,
      tools: false,
      thinking: false,
      json: false,
    });
  });
});
