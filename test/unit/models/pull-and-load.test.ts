import { readdir, readFile, realpath, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { DiskHubStore } from "../../../src/models/hub/disk-hub-store.ts";
import type { AliasEntry } from "../../../src/models/names/alias-table.ts";
import { writeGguf, type GgufFile } from "../../support/gguf-writer.ts";
import { shardsOf, tinyLlama, tinyProjector } from "../../support/tiny-models.ts";
import { COMMIT_A, COMMIT_B, otherToolsRepo } from "./hub/cache/other-tools-cache.ts";
import { fixtureHub } from "./hub/hub-test.ts";
import { startModels, type Fixture } from "./service-fixture.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const NEVER = new AbortController().signal;

const alias = (repo: string, file: string, tags: string[] = []): AliasEntry => ({ repo, file, tags });
const ALIASES = new Map([
  ["tiny:1b", alias("ada/tiny-GGUF", "tiny-Q4_K_M.gguf")],
  ["seer:1b", alias("ada/seer-GGUF", "seer-Q8_0.gguf", ["vision"])],
  ["big:9b", alias("ada/big-GGUF", "big-Q4_K_M-00001-of-00003.gguf")],
]);

async function bytesOf(model: GgufFile): Promise<Buffer> {
  const file = path.join(await temporaryFolder(), "model.gguf");
  writeGguf(file, model);
  return await readFile(file);
}

/** Models service with the real name resolver and hub cache, on a fixture hub. */
async function startWithHub(): Promise<Fixture> {
  const shards = await Promise.all(shardsOf(tinyLlama({ name: "big" }), 3).map(bytesOf));
  const hub = await fixtureHub({
    repos: {
      "ada/tiny-GGUF": {
        files: {
          "tiny-Q4_K_M.gguf": await bytesOf(tinyLlama({ name: "small" })),
          "tiny-Q8_0.gguf": await bytesOf(tinyLlama({ name: "better" })),
        },
      },
      "ada/seer-GGUF": {
        files: {
          "seer-Q8_0.gguf": await bytesOf(tinyLlama({ name: "seer" })),
          "mmproj-seer-f16.gguf": await bytesOf(tinyProjector()),
        },
      },
      "ada/looker-GGUF": {
        files: {
          "looker-Q8_0.gguf": await bytesOf(tinyLlama({ name: "looker" })),
          "mmproj-looker-f16.gguf": await bytesOf(tinyProjector()),
        },
      },
      "ada/big-GGUF": {
        files: Object.fromEntries(
          shards.map((shard, index) => [`big-Q4_K_M-0000${index + 1}-of-00003.gguf`, shard]),
        ),
      },
    },
  });
  return await startModels({
    aliases: ALIASES,
    store: (cacheDir) => new DiskHubStore({ cacheDir, hubUrl: hub.url }),
  });
}

describe("a model of the hub", () => {
  it("in an older revision can be deleted by that revision, and stays in the newer one", async () => {
    const content = (await bytesOf(tinyLlama({ name: "same" }))).toString("latin1");
    const fixture = await startWithHub();
    const root = await otherToolsRepo(fixture.cacheDir, "eve/same-GGUF", {
      snapshots: { [COMMIT_A]: { "same-Q8_0.gguf": "" }, [COMMIT_B]: { "same-Q8_0.gguf": "" } },
      refs: { main: COMMIT_A },
    });
    const blobs = path.join(root, "blobs");
    for (const blob of await readdir(blobs)) await writeFile(path.join(blobs, blob), content, "latin1");
    const old = `hf:eve/same-GGUF:same-Q8_0.gguf@${COMMIT_B}`;
    expect((await fixture.models.get(old)).alias).toBe(old);

    await fixture.models.delete(old);

    expect((await fixture.models.get("hf:eve/same-GGUF:same-Q8_0.gguf")).state).toBe("available");
    await expect(fixture.models.get(old)).rejects.toMatchObject({ code: "model_not_found" });
  });

  it.each(["tiny:1b", "hf:ada/tiny-GGUF:tiny-Q4_K_M.gguf"])(
    "is listed while %s is being pulled, under its future name",
    async (name) => {
      const { models } = await startWithHub();
      const seen: (typeof models.downloads)[number][] = [];
      const { sizeBytes } = await models.pull(name, () => void seen.push({ ...models.downloads[0]! }), NEVER);
      expect(seen.at(-1)).toMatchObject({
        alias: "tiny:1b",
        downloadedBytes: sizeBytes,
        totalBytes: sizeBytes,
      });
      expect(models.downloads).toEqual([]);
    },
  );

  it("is pulled by alias, loaded from its blobs, and deleted", async () => {
    const { models, engines } = await startWithHub();
    const pulled = await models.pull("tiny:1b", () => {}, NEVER);
    expect(pulled).toMatchObject({ alias: "tiny:1b", repo: "ada/tiny-GGUF" });

    const model = await models.load({ alias: "tiny:1b" });

    expect(model).toMatchObject({ state: "loaded", source: { kind: "hub", repo: "ada/tiny-GGUF" } });
    const [loaded] = engines.last.spec.modelFiles;
    expect(loaded).toBe(await realpath(model.path));
    expect((await models.get("hf:ada/tiny-GGUF:Q4_K_M")).alias).toBe("tiny:1b");

    await models.delete("tiny:1b");
    expect((await models.list()).map((other) => other.alias)).toEqual(["daybreak-mini"]);
  });

  it("has a separate name for each quantization, which resolves to it", async () => {
    const { models } = await startWithHub();
    await models.pull("tiny:1b", () => {}, NEVER);
    const { alias: other } = await models.pull("hf:ada/tiny-GGUF:Q8_0", () => {}, NEVER);
    expect(other).not.toBe("tiny:1b");
    const list = await models.list();
    expect(list).toHaveLength(3);
    for (const model of list) {
      expect(await models.get(model.alias)).toMatchObject({
        alias: model.alias,
        gguf: { name: model.gguf.name },
      });
    }
    expect((await models.get(other)).gguf.name).toBe("better");
  });

  it("is pulled with its projector if its alias has the tag vision, also by its spec", async () => {
    for (const name of ["seer:1b", "hf:ada/seer-GGUF:seer-Q8_0.gguf"]) {
      const { models, engines } = await startWithHub();
      const { alias: seer } = await models.pull(name, () => {}, NEVER);
      expect((await models.load({ alias: seer })).capabilities.vision).toBe(true);
      expect(engines.last.spec.projectorFile).toBeDefined();
    }
  });

  it("is pulled with the projector of its repository if it has no alias", async () => {
    const { models } = await startWithHub();
    const { alias: looker } = await models.pull("hf:ada/looker-GGUF", () => {}, NEVER);
    expect((await models.load({ alias: looker })).capabilities.vision).toBe(true);
  });

  it("loads all its shards", async () => {
    const { models, engines } = await startWithHub();
    await models.pull("big:9b", () => {}, NEVER);
    const model = await models.load({ alias: "big:9b" });
    expect(model.files).toHaveLength(3);
    expect(engines.last.spec.modelFiles).toHaveLength(3);
  });

  it("can be the base of a created model", async () => {
    const { models } = await startWithHub();
    await models.pull("tiny:1b", () => {}, NEVER);
    const created = await models.create("my-tiny", "FROM hf:ada/tiny-GGUF", {});
    expect(created.gguf.name).toBe("small");
  });
});
