import { execFile } from "node:child_process";
import { getEventListeners } from "node:events";
import { mkdir, realpath, symlink, unlink } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { ServiceError } from "../../../src/errors/service-error.ts";
import { writeGguf } from "../../support/gguf-writer.ts";
import { FILES_HAVE_LINKS, FOLDERS_HAVE_LINKS, linkFolder } from "../../support/links.ts";
import { shardsOf, tinyBert, tinyLlama, tinyProjector } from "../../support/tiny-models.ts";
import { settle } from "../../support/fake-clock.ts";
import { startModels } from "./service-fixture.ts";

const MINI = "daybreak-mini";

describe("loading a model", () => {
  it("starts its engine with the default specification if nothing is requested", async () => {
    const { models, engines, shippedDir } = await startModels();

    const model = await models.load({ alias: MINI });

    expect(model).toMatchObject({ alias: MINI, state: "loaded", gpuLayers: 0, memoryBytes: 1234 });
    expect(engines.starts[0]?.spec).toMatchObject({
      modelFiles: [path.join(shippedDir, "daybreak-mini.gguf")],
      purpose: "generate",
      gpuLayers: 0,
      slots: 4,
      threads: 2,
      flashAttention: "auto",
      contextShift: false,
    });
  });

  it.each([
    ["the trained size if it fits into memory", 8192, undefined, 8192, 0],
    ["a small trained size", 512, undefined, 512, 0],
    ["the requested size", 8192, 1024, 1024, 0],
    ["a requested size above the trained one, with a warning,", 512, 2048, 2048, 1],
  ])("gives %s as context", async (_what, trained, requested, expected, warnings) => {
    const fixture = await startModels();
    const file = fixture.userFile("a.gguf", tinyLlama({ context: trained }));
    const model = await fixture.models.load({ alias: "a", path: file, contextSize: requested });
    expect(model.contextSize).toBe(expected);
    expect(fixture.warnings).toHaveLength(warnings);
  });

  it("processes an encoder's text in one batch", async () => {
    const { models, engines, userFile } = await startModels();
    await models.load({ alias: "bert", path: userFile("bert.gguf", tinyBert({ context: 128 })) });
    expect(engines.starts[0]?.spec).toMatchObject({ purpose: "embed", contextSize: 128, batchSize: 128 });
  });

  it("by path registers the file under its alias", async () => {
    const fixture = await startModels();
    await fixture.models.load({ alias: "mine", path: fixture.userFile("x.gguf") });
    await fixture.models.unload("mine");

    expect(await fixture.models.get("mine")).toMatchObject({ state: "available", source: { kind: "file" } });
    const { models } = await fixture.restart();
    expect(await models.get("mine")).toMatchObject({ state: "available", source: { kind: "file" } });
  });

  it("by a path alone names the model after its file", async () => {
    const { models, userFile, userDir } = await startModels();
    const file = userFile("Some Model.gguf");
    expect((await models.load({ alias: file })).alias).toBe("Some-Model");

    const other = path.join(userDir, "sub");
    await mkdir(other);
    writeGguf(path.join(other, "Some Model.gguf"), tinyLlama());
    expect((await models.load({ alias: path.join(other, "Some Model.gguf") })).alias).toBe("Some-Model-2");
    await expect(models.load({ alias: file })).rejects.toMatchObject({ code: "model_already_loaded" });
  });

  it.each(["constructor", "toString", "UPPER_case.1", "name:tag"])("accepts the alias %s", async (alias) => {
    const fixture = await startModels();
    await fixture.models.load({ alias, path: fixture.userFile("x.gguf") });
    const { models } = await fixture.restart();
    expect((await models.get(alias)).alias).toBe(alias);
    await models.delete(alias);
    await expect(models.get(alias)).rejects.toMatchObject({ code: "model_not_found" });
  });

  it("unregisters the file again if the load fails", async () => {
    const { models, engines, userFile } = await startModels();
    engines.error = new ServiceError("model_load_failed", "No.");
    await expect(models.load({ alias: "mine", path: userFile("x.gguf") })).rejects.toMatchObject({
      code: "model_load_failed",
    });
    await expect(models.get("mine")).rejects.toMatchObject({ code: "model_not_found" });
  });

  it("rejects an alias of another model, and accepts it for the same file", async () => {
    const { models, userFile, shippedDir } = await startModels();
    await expect(models.load({ alias: MINI, path: userFile("x.gguf") })).rejects.toMatchObject({
      code: "model_exists",
    });
    const same = await models.load({ alias: MINI, path: path.join(shippedDir, "daybreak-mini.gguf") });
    expect(same.source.kind).toBe("shipped");
  });

  it("finds all shards, whichever is named", async () => {
    const { models, engines, userDir } = await startModels();
    const files = shardsOf(tinyLlama(), 2).map((shard, index) => {
      const file = path.join(userDir, `big-0000${index + 1}-of-00002.gguf`);
      writeGguf(file, shard);
      return file;
    });
    await models.load({ alias: "big", path: files[1]! });
    expect(engines.starts[0]?.spec.modelFiles).toEqual(files);
  });

  it("rejects a projector as a model, and a model as a projector", async () => {
    const { models, userFile } = await startModels();
    const projector = userFile("mmproj.gguf", tinyProjector());
    const model = userFile("x.gguf");
    await expect(models.load({ alias: "a", path: projector })).rejects.toMatchObject({
      code: "invalid_model_file",
    });
    await expect(models.load({ alias: "a", path: model, mmproj: model })).rejects.toMatchObject({
      code: "invalid_model_file",
    });
  });

  it("uses a projector for a single load of a model without one", async () => {
    const { models, engines, userFile } = await startModels();
    const mmproj = userFile("mmproj.gguf", tinyProjector());
    const model = await models.load({ alias: MINI, mmproj });
    expect(model.capabilities.vision).toBe(true);
    expect(engines.starts[0]?.spec.projectorFile).toBe(mmproj);
  });

  it("is rejected with both figures if there is too little memory", async () => {
    const { models, engines } = await startModels({ estimateMemory: () => 200 * 1024 * 1024 });
    await expect(models.load({ alias: MINI })).rejects.toMatchObject({
      code: "insufficient_memory",
      message: expect.stringMatching(/200 MiB.*100 MiB/),
    });
    expect(engines.starts).toHaveLength(0);
  });
});

describe("a path in a load request", () => {
  it.each([
    ["nothing", "none.gguf", "model_file_not_found"],
    ["a folder", ".", "path_not_allowed"],
  ])("may not name %s", async (_what, name, code) => {
    const { models, userDir } = await startModels();
    await expect(models.load({ alias: "a", path: path.join(userDir, name) })).rejects.toMatchObject({ code });
  });

  it.skipIf(process.platform === "win32")("may not name a FIFO or a device", async () => {
    const { models, userDir } = await startModels();
    const fifo = path.join(userDir, "fifo.gguf");
    await promisify(execFile)("mkfifo", [fifo]);
    for (const file of [fifo, "/dev/zero"]) {
      await expect(models.load({ alias: "a", path: file })).rejects.toMatchObject({
        code: "path_not_allowed",
      });
    }
  });

  it.skipIf(!FILES_HAVE_LINKS)("is passed to the engine with its symlinks resolved", async () => {
    const { models, engines, userFile, userDir } = await startModels();
    const blob = userFile("blob");
    const link = path.join(userDir, "link.gguf");
    await symlink(blob, link);
    const model = await models.load({ alias: "a", path: link });
    expect(model.path).toBe(link);
    expect(engines.starts[0]?.spec.modelFiles).toEqual([await realpath(blob)]);
  });

  describe("confined to a folder", () => {
    it.skipIf(!FOLDERS_HAVE_LINKS)("may be inside, also through a symlink of the folder itself", async () => {
      const fixture = await startModels();
      const inside = fixture.userFile("inside.gguf");
      const other = path.join(fixture.cacheDir, "way-in");
      await linkFolder(fixture.userDir, other);
      const { models } = await fixture.restart({ allowed_dirs: [fixture.userDir] });

      for (const [alias, file] of Object.entries({ a: inside, b: path.join(other, "inside.gguf") })) {
        expect((await models.load({ alias, path: file })).state).toBe("loaded");
      }
    });

    it("may not be outside, whether it exists or not", async () => {
      const fixture = await startModels();
      const { models } = await fixture.restart({ allowed_dirs: [fixture.userDir] });
      const shipped = path.join(fixture.shippedDir, "daybreak-mini.gguf");
      const sneaking = path.join(fixture.userDir, "..", "models", "daybreak-mini.gguf");
      for (const file of [
        shipped,
        sneaking,
        path.join(fixture.shippedDir, "none.gguf"),
        `${fixture.userDir}-x.gguf`,
      ]) {
        await expect(models.load({ alias: "a", path: file })).rejects.toMatchObject({
          code: "path_not_allowed",
        });
      }
    });

    it.skipIf(!FILES_HAVE_LINKS)("may not leave through a symlink", async () => {
      const fixture = await startModels();
      const link = path.join(fixture.userDir, "link.gguf");
      await symlink(path.join(fixture.shippedDir, "daybreak-mini.gguf"), link);
      const { models } = await fixture.restart({ allowed_dirs: [fixture.userDir] });

      await expect(models.load({ alias: "a", path: link })).rejects.toMatchObject({
        code: "path_not_allowed",
      });
    });

    it("may not have a projector outside", async () => {
      const fixture = await startModels();
      const inside = fixture.userFile("inside.gguf");
      const outside = path.join(fixture.shippedDir, "mmproj-x.gguf");
      writeGguf(outside, tinyProjector());
      const { models } = await fixture.restart({ allowed_dirs: [fixture.userDir] });

      await expect(models.load({ alias: "a", path: inside, mmproj: outside })).rejects.toMatchObject({
        code: "path_not_allowed",
      });
    });

    it("does not confine shipped models", async () => {
      const fixture = await startModels();
      const { models } = await fixture.restart({ allowed_dirs: [fixture.userDir] });
      expect((await models.load({ alias: MINI })).state).toBe("loaded");
    });
  });

  it.skipIf(!FILES_HAVE_LINKS)("of the hub cache may not be a symlink that leaves the cache", async () => {
    const { models, hub, userFile } = await startModels();
    const cached = await hub.add("ada", "tiny-GGUF", "tiny.gguf");
    const outside = userFile("outside.gguf");
    await unlink(cached.files[0]!);
    await symlink(outside, cached.files[0]!);

    await expect(models.load({ alias: "tiny:1b" })).rejects.toMatchObject({ code: "path_not_allowed" });
    expect((await models.list()).map(({ alias }) => alias)).toEqual([MINI]);
  });
});

describe("two loads of one alias", () => {
  it("with the same settings are one load, and both succeed", async () => {
    const { models, engines } = await startModels();
    engines.manual = true;
    const clients = [new AbortController().signal, new AbortController().signal];
    const both = Promise.all(clients.map(async (client) => await models.load({ alias: MINI }, client)));
    while (engines.starts.length === 0 || !clients.every(waits)) await settle();
    engines.starts[0]?.succeed();

    expect((await both).map(({ state }) => state)).toEqual(["loaded", "loaded"]);
    expect(engines.starts).toHaveLength(1);
  });

  it("with different settings conflict", async () => {
    const { models, engines } = await startModels();
    engines.manual = true;
    const first = models.load({ alias: MINI });
    await started(engines.starts);
    expect((await models.get(MINI)).state).toBe("loading");

    await expect(models.load({ alias: MINI, contextSize: 64 })).rejects.toMatchObject({ code: "model_busy" });

    engines.starts[0]?.succeed();
    await first;
  });

  it("in succession conflict", async () => {
    const { models } = await startModels();
    await models.load({ alias: MINI });
    await expect(models.load({ alias: MINI })).rejects.toMatchObject({ code: "model_already_loaded" });
    await models.unload(MINI);
    await expect(models.unload(MINI)).rejects.toMatchObject({ code: "model_already_unloaded" });
  });
});

/** Requests listen to the signal of their client while they wait for a load. */
function waits(client: AbortSignal): boolean {
  return getEventListeners(client, "abort").length > 0;
}

async function started(starts: readonly unknown[]): Promise<void> {
  while (starts.length === 0) await settle();
}
