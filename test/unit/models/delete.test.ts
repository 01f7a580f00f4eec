import { access } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { ALIAS, startModels } from "./service-fixture.ts";

const MINI = "daybreak-mini";
const NEVER = new AbortController().signal;

describe("deleting", () => {
  it("a model of the hub deletes its files", async () => {
    const { models, hub, events } = await startModels();
    await models.pull(ALIAS, () => {}, NEVER);
    expect(await models.delete(ALIAS)).toEqual({ alias: ALIAS, source: "hub" });
    expect(await hub.list()).toEqual([]);
    expect(events.at(-1)).toEqual({ type: "model-deleted", model: ALIAS });
    await expect(models.get(ALIAS)).rejects.toMatchObject({ code: "model_not_found" });
  });

  it("a file loaded by path only unregisters it", async () => {
    const fixture = await startModels();
    const file = fixture.userFile("x.gguf");
    await fixture.models.load({ alias: "mine", path: file });
    await fixture.models.delete("mine");
    await access(file);
    const { models } = await fixture.restart();
    await expect(models.get("mine")).rejects.toMatchObject({ code: "model_not_found" });
  });

  it("a shipped model hides it until the next start", async () => {
    const fixture = await startModels();
    await fixture.models.delete(MINI);
    await expect(fixture.models.get(MINI)).rejects.toMatchObject({ code: "model_not_found" });
    expect((await (await fixture.restart()).models.get(MINI)).alias).toBe(MINI);
  });

  it("a shipped model is undone by loading or pulling it, without the hub", async () => {
    const { models, hub, events } = await startModels();
    expect(await models.delete(MINI)).toEqual({ alias: MINI, source: "shipped" });
    expect(await models.list()).toEqual([]);
    await expect(models.get(MINI)).rejects.toMatchObject({
      code: "model_not_found",
      message: expect.stringContaining(`daybreak load ${MINI}`),
    });
    expect((await models.load({ alias: `${MINI}:latest` })).alias).toBe(MINI);
    await models.delete(MINI);
    const { fileSize } = (await (await startModels()).models.get(MINI)).gguf;
    expect(await models.pull(MINI, () => {}, NEVER)).toEqual({ alias: MINI, repo: "", sizeBytes: fileSize });
    expect((await models.get(MINI)).isDefault).toBe(true);
    expect(hub.pulls).toBe(0);
    expect(events.map(({ type }) => type)).not.toContain("model-downloaded");
  });

  it("a shipped model keeps models created from it usable", async () => {
    const { models } = await startModels();
    await models.create("made", `FROM ${MINI}`, {});
    await models.delete(MINI);
    expect((await models.list()).map(({ alias }) => alias)).toEqual(["made"]);
    expect((await models.load({ alias: "made" })).state).toBe("loaded");
  });

  it("a created model removes its definition and keeps its base", async () => {
    const { models } = await startModels();
    await models.create("made", `FROM ${MINI}`, {});
    await models.delete("made");
    await expect(models.get("made")).rejects.toMatchObject({ code: "model_not_found" });
    expect((await models.get(MINI)).alias).toBe(MINI);
  });

  it("a loaded model unloads it first", async () => {
    const { models, engines, events } = await startModels();
    await models.load({ alias: MINI });
    await models.delete(MINI);
    expect(engines.last.alive).toBe(false);
    expect(events.map(({ type }) => type)).toEqual(["model-loaded", "model-unloaded", "model-deleted"]);
  });

  it("a model works even if its files are unusable", async () => {
    const { models } = await startModels();
    await models.pull(ALIAS, () => {}, NEVER);
    await models.create("made", `FROM ${ALIAS}`, {});
    await models.delete(ALIAS);
    await expect(models.get("made")).rejects.toMatchObject({
      code: "model_not_found",
      message: expect.stringContaining(ALIAS),
    });
    await models.delete("made");
    expect((await models.list()).map(({ alias }) => alias)).toEqual([MINI]);
  });

  it("a model is rejected while it is being downloaded", async () => {
    const { models, hub } = await startModels();
    await models.pull(ALIAS, () => {}, NEVER);
    const { promise, resolve } = Promise.withResolvers<void>();
    hub.untilPulled = promise;
    const pulling = models.pull(ALIAS, () => {}, NEVER);
    expect((await models.get(ALIAS)).state).toBe("downloading");
    await expect(models.delete(ALIAS)).rejects.toMatchObject({ code: "model_busy" });
    resolve();
    await pulling;
    expect((await models.get(ALIAS)).state).toBe("available");
  });

  it("an unknown model is rejected", async () => {
    const { models } = await startModels();
    await expect(models.delete("nobody")).rejects.toMatchObject({ code: "model_not_found" });
  });
});

describe("pulling", () => {
  it("emits one model-downloaded event for concurrent callers", async () => {
    const { models, events } = await startModels();
    const results = await Promise.all([
      models.pull(ALIAS, () => {}, NEVER),
      models.pull(ALIAS, () => {}, NEVER),
    ]);
    expect(results[0]).toMatchObject({ alias: ALIAS, repo: "ada/tiny-GGUF" });
    expect(results[1]).toEqual(results[0]);
    expect(events.map(({ type }) => type)).toEqual(["model-downloaded"]);
  });

  it("rejects a name that is no alias or spec of the hub", async () => {
    const { models } = await startModels();
    await expect(models.pull("nobody", () => {}, NEVER)).rejects.toMatchObject({
      code: "model_not_found",
      message: expect.stringContaining("hf:owner/repo"),
    });
  });
});
