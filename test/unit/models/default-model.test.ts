import { rm } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { tinyBert } from "../../support/tiny-models.ts";
import { ALIAS, startModels } from "./service-fixture.ts";

const MINI = "daybreak-mini";
const NEVER = new AbortController().signal;

describe("DefaultModel", () => {
  it("is the shipped model if none is configured or chosen", async () => {
    const { models } = await startModels();
    expect(models.defaultAlias).toBe(MINI);
    expect((await models.get(MINI)).isDefault).toBe(true);
  });

  it("is never a model that does not generate text", async () => {
    const { models, userFile } = await startModels();
    await models.load({ alias: "embedder", path: userFile("bert.gguf", tinyBert()) });
    await models.delete(MINI);
    expect(models.defaultAlias).toBeUndefined();
  });

  it("is the configured model, given by alias or path", async () => {
    const fixture = await startModels();
    await fixture.hub.add("ada", "tiny-GGUF", "tiny.gguf");
    expect((await fixture.restart({ default: ALIAS })).models.defaultAlias).toBe(ALIAS);
    expect((await fixture.restart({ default: "hf:ada/tiny-GGUF" })).models.defaultAlias).toBe(ALIAS);
    const file = fixture.userFile("own.gguf");
    expect((await fixture.restart({ default: file })).models.defaultAlias).toBe("own");
  });

  it("stays the configured model while that is missing, so that requests fail with the reason", async () => {
    const { models, hub } = await startModels({ config: { default: ALIAS } });
    expect(models.defaultAlias).toBe(ALIAS);
    await expect(models.acquire(undefined, NEVER)).rejects.toMatchObject({
      code: "model_not_found",
      message: expect.stringContaining("pull"),
    });
    await models.pull(ALIAS, () => {}, NEVER);
    expect(hub.pulls).toBe(1);
    using lease = await models.acquire(undefined, NEVER);
    expect(lease.model.alias).toBe(ALIAS);
  });

  it("warns about a configured file that cannot be used", async () => {
    const { warnings } = await startModels({ config: { default: "/no/such/file.gguf" } });
    expect(warnings).toContain("The configured default model cannot be used");
  });

  it("can be chosen alone or with a load, and the choice survives a restart", async () => {
    const fixture = await startModels();
    await fixture.models.load({ alias: "mine", path: fixture.userFile("x.gguf"), setDefault: true });
    expect(fixture.models.defaultAlias).toBe("mine");
    expect((await fixture.restart()).models.defaultAlias).toBe("mine");

    await fixture.models.setDefault(MINI);
    expect((await fixture.restart()).models.defaultAlias).toBe(MINI);
  });

  it("is the configured model again after a restart, whatever was chosen", async () => {
    const fixture = await startModels({ config: { default: MINI } });
    await fixture.models.load({ alias: "mine", path: fixture.userFile("x.gguf"), setDefault: true });
    expect(fixture.models.defaultAlias).toBe("mine");
    expect((await fixture.restart()).models.defaultAlias).toBe(MINI);
  });

  it("rejects a choice of a model that does not exist", async () => {
    const { models } = await startModels();
    await expect(models.setDefault("nobody")).rejects.toMatchObject({ code: "model_not_found" });
    expect(models.defaultAlias).toBe(MINI);
  });

  it("falls back to another model if the chosen one is deleted", async () => {
    const { models, userFile } = await startModels();
    await models.load({ alias: "mine", path: userFile("x.gguf"), setDefault: true });
    await models.delete("mine");
    expect(models.defaultAlias).toBe(MINI);
  });

  it("is any model if the shipped one is missing, and undefined without models", async () => {
    const fixture = await startModels();
    await rm(path.join(fixture.shippedDir, "daybreak-mini.gguf"));
    await fixture.models.load({ alias: "mine", path: fixture.userFile("x.gguf") });
    expect(fixture.models.defaultAlias).toBe("mine");
    await fixture.models.delete("mine");
    expect(fixture.models.defaultAlias).toBeUndefined();
    await expect(fixture.models.acquire(undefined, NEVER)).rejects.toMatchObject({ code: "model_not_found" });
  });
});
