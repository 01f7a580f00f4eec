import { access } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { ALIAS, startModels } from "./service-fixture.ts";

const MINI = "daybreak-mini";
const NEVER = new AbortController().signal;

describe("deleting a model", () => {
  it("of the hub removes its files", async () => {
    const { models, hub, events } = await startModels();
    await models.pull(ALIAS, () => {}, NEVER);
    expect(await models.delete(ALIAS)).toEqual({ alias: ALIAS, source: "hub" });
    expect(await hub.list()).toEqual([]);
    expect(events.at(-1)).toEqual({ type: "model-deleted", model: ALIAS });
    await expect(models.get(ALIAS)).rejects.toMatchObject({ code: "model_not_found" });
  });

  it("of the user's own only forgets it", async () => {
    const fixture = await startModels();
    const file = fixture.userFile("x.gguf");
    await fixture.models.load({ alias: "mine", path: file });
    await fixture.models.delete("mine");
    await access(file);
    const { models } = await fixture.restart();
    await expect(models.get("mine")).rejects.toMatchObject({ code: "model_not_found" });
  });

  it("that ships forgets it until the next start", async () => {
    const fixture = await startModels();
    await fixture.models.delete(MINI);
    await expect(fixture.models.get(MINI)).rejects.toMatchObject({ code: "model_not_found" });
    expect((await (await fixture.restart()).models.get(MINI)).alias).toBe(MINI);
  });

  it("that ships is undone by loading it, and by pulling it, which needs no hub", async () => {
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

  it("that ships leaves what was made from it usable", async () => {
    const { models } = await startModels();
    await models.create("made", `FROM ${MINI}`, {});
    await models.delete(MINI);
    expect((await models.list()).map(({ alias }) => alias)).toEqual(["made"]);
    expect((await models.load({ alias: "made" })).state).toBe("loaded");
  });

  it("that was made removes the definition, and the base stays", async () => {
    const { models } = await startModels();
    await models.create("made", `FROM ${MINI}`, {});
    await models.delete("made");
    await expect(models.get("made")).rejects.toMatchObject({ code: "model_not_found" });
    expect((await models.get(MINI)).alias).toBe(MINI);
  });

  it("that is loaded unloads it first", async () => {
    const { models, engines, events } = await startModels();
    await models.load({ alias: MINI });
    await models.delete(MINI);
    expect(engines.last.alive).toBe(false);
    expect(events.map(({ type }) => type)).toEqual(["model-loaded", "model-unloaded", "model-deleted"]);
  });

  it("also works when it cannot be used any more", async () => {
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

  it("is refused while it is being downloaded", async () => {
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

  it("that nobody knows is refused", async () => {
    const { models } = await startModels();
    await expect(models.delete("nobody")).rejects.toMatchObject({ code: "model_not_found" });
  });
});

describe("pulling", () => {
  it("reports one download, however many wait for it", async () => {
    const { models, events } = await startModels();
    const results = await Promise.all([
      models.pull(ALIAS, () => {}, NEVER),
      models.pull(ALIAS, () => {}, NEVER),
    ]);
    expect(results[0]).toMatchObject({ alias: ALIAS, repo: "ada/tiny-GGUF" });
    expect(results[1]).toEqual(results[0]);
    expect(events.map(({ type }) => type)).toEqual(["model-downloaded"]);
  });

  it("needs an alias of the hub or a spec", async () => {
    const { models } = await startModels();
    await expect(models.pull("nobody", () => {}, NEVER)).rejects.toMatchObject({
      code: "model_not_found",
      message: expect.stringContaining("hf:owner/repo"),
    });
  });
});
