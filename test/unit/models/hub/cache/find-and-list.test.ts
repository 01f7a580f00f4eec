import { execFile } from "node:child_process";
import { mkdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { DiskHubStore } from "../../../../../src/models/hub/disk-hub-store.ts";
import type { HubSpec } from "../../../../../src/models/names/hub-spec.ts";
import { FILES_HAVE_LINKS, FOLDERS_HAVE_LINKS, linkFolder } from "../../../../support/links.ts";
import { REPO, SPEC } from "../hub-test.ts";
import { temporaryFolder } from "../../temporary-folder.ts";
import {
  COMMIT_A,
  COMMIT_B,
  NAMES_OF_BLOBS,
  otherToolsRepo,
  type OtherToolsRepo,
} from "./other-tools-cache.ts";

const fetch = () => Promise.reject(new Error("the hub was requested"));

/** Creates a store without a hub, so that all results come from the disk. */
function offline(cacheDir: string): DiskHubStore {
  return new DiskHubStore({ cacheDir, hubUrl: "https://hub.invalid", fetch });
}

async function cacheOf(layout: OtherToolsRepo): Promise<{ store: DiskHubStore; root: string }> {
  const cacheDir = await temporaryFolder();
  const root = await otherToolsRepo(cacheDir, REPO, layout);
  return { store: offline(cacheDir), root };
}

async function names(store: DiskHubStore): Promise<string[]> {
  return (await store.list()).map((model) => model.spec);
}

describe("models that other tools have downloaded", () => {
  it.each([...NAMES_OF_BLOBS, "copies"] as const)("are found and listed (%s)", async (files) => {
    const { store, root } = await cacheOf({
      snapshots: { [COMMIT_A]: { "tiny-Q4_K_M.gguf": "four", "README.md": "text", "config.json": "{}" } },
      refs: { main: COMMIT_A },
      files,
    });

    const expected = {
      spec: `hf:${REPO}:tiny-Q4_K_M.gguf`,
      repo: REPO,
      revision: COMMIT_A,
      file: "tiny-Q4_K_M.gguf",
      files: [path.join(root, "snapshots", COMMIT_A, "tiny-Q4_K_M.gguf")],
      projector: undefined,
      sizeBytes: 4,
    };
    expect(await store.list()).toEqual([expected]);
    expect(await store.find(SPEC)).toEqual(expected);
  });

  it("are found in folders of a repository, by path, file name and quantization", async () => {
    const { store } = await cacheOf({
      snapshots: { [COMMIT_A]: { "Q8_0/tiny-Q8_0.gguf": "eight", "tiny-Q4_K_M.gguf": "four" } },
      refs: { main: COMMIT_A },
    });
    const find = async (spec: Partial<HubSpec>) => (await store.find({ ...SPEC, ...spec }))?.file;

    expect(await find({})).toBe("tiny-Q4_K_M.gguf");
    expect(await find({ quant: "Q8_0" })).toBe("Q8_0/tiny-Q8_0.gguf");
    expect(await find({ file: "Q8_0/tiny-Q8_0.gguf" })).toBe("Q8_0/tiny-Q8_0.gguf");
    expect(await find({ file: "tiny-Q8_0.gguf" })).toBe("Q8_0/tiny-Q8_0.gguf");
    expect(await find({ quant: "Q6_K" })).toBeUndefined();
  });

  it("are one model if they have shards, and none while a shard is missing", async () => {
    const shards = {
      "big-00002-of-00003.gguf": "22",
      "big-00001-of-00003.gguf": "1",
      "big-00003-of-00003.gguf": "333",
    };
    const { store, root } = await cacheOf({ snapshots: { [COMMIT_A]: shards }, refs: { main: COMMIT_A } });
    const snapshot = path.join(root, "snapshots", COMMIT_A);

    const [model] = await store.list();
    expect(model?.files).toEqual(
      Object.keys(shards)
        .toSorted()
        .map((name) => path.join(snapshot, name)),
    );
    expect(model?.sizeBytes).toBe(6);

    await rm(path.join(snapshot, "big-00002-of-00003.gguf"));
    expect(await store.list()).toEqual([]);
    expect(await store.find(SPEC)).toBeUndefined();
  });

  it("have the projector in the same folder", async () => {
    const files = { "tiny-Q4_K_M.gguf": "four", "mmproj-F16.gguf": "eye" };
    const { store, root } = await cacheOf({ snapshots: { [COMMIT_A]: files }, refs: { main: COMMIT_A } });

    const models = await store.list();

    expect(models).toHaveLength(1);
    expect(models[0]?.projector).toBe(path.join(root, "snapshots", COMMIT_A, "mmproj-F16.gguf"));
    expect(models[0]?.sizeBytes).toBe(7);
  });

  it.skipIf(!FILES_HAVE_LINKS)("are not listed while their blob is missing", async () => {
    const { store, root } = await cacheOf({
      snapshots: { [COMMIT_A]: { "tiny-Q4_K_M.gguf": "four" } },
      refs: { main: COMMIT_A },
    });
    await rm(path.join(root, "blobs"), { recursive: true });

    expect(await store.list()).toEqual([]);
  });

  it("are found without any ref", async () => {
    const { store } = await cacheOf({ snapshots: { [COMMIT_A]: { "tiny-Q4_K_M.gguf": "four" } } });

    expect((await store.find(SPEC))?.revision).toBe(COMMIT_A);
    expect(await names(store)).toEqual([`hf:${REPO}:tiny-Q4_K_M.gguf`]);
  });
});

describe("revisions in the cache", () => {
  it("are named after their branch or tag, and found by it or by their commit", async () => {
    const { store } = await cacheOf({
      snapshots: { [COMMIT_A]: { "tiny-Q4_K_M.gguf": "new" }, [COMMIT_B]: { "tiny-Q4_K_M.gguf": "old" } },
      refs: { main: COMMIT_A, "refs/pr/1": COMMIT_B, "v1.0": COMMIT_B },
    });
    const find = async (revision?: string) => (await store.find({ ...SPEC, revision }))?.revision;

    expect(await names(store)).toEqual([
      `hf:${REPO}:tiny-Q4_K_M.gguf`,
      `hf:${REPO}:tiny-Q4_K_M.gguf@refs/pr/1`,
    ]);
    expect(await find()).toBe(COMMIT_A);
    expect(await find("main")).toBe(COMMIT_A);
    expect(await find("v1.0")).toBe(COMMIT_B);
    expect(await find("refs/pr/1")).toBe(COMMIT_B);
    expect(await find(COMMIT_A)).toBe(COMMIT_A);
    expect(await find(COMMIT_B)).toBe(COMMIT_B);
    expect(await find("v2.0")).toBeUndefined();
    expect(await find("c".repeat(40))).toBeUndefined();
  });

  it("include a model of main that was not downloaded again for a later main", async () => {
    const { store } = await cacheOf({
      snapshots: { [COMMIT_A]: { "tiny-Q8_0.gguf": "eight" }, [COMMIT_B]: { "tiny-Q4_K_M.gguf": "four" } },
      refs: { main: COMMIT_A },
    });

    expect(await names(store)).toEqual([`hf:${REPO}:tiny-Q8_0.gguf`, `hf:${REPO}:tiny-Q4_K_M.gguf`]);
    expect((await store.find({ ...SPEC, quant: "Q4_K_M" }))?.revision).toBe(COMMIT_B);
  });

  it("list unchanged content only once", async () => {
    const { store } = await cacheOf({
      snapshots: { [COMMIT_A]: { "tiny-Q4_K_M.gguf": "same" }, [COMMIT_B]: { "tiny-Q4_K_M.gguf": "same" } },
      refs: { main: COMMIT_A },
    });

    expect(await names(store)).toEqual([`hf:${REPO}:tiny-Q4_K_M.gguf`]);
    expect((await store.find({ ...SPEC, revision: COMMIT_B }))?.revision).toBe(COMMIT_B);
  });

  it("name earlier content of main by its commit", async () => {
    const { store } = await cacheOf({
      snapshots: { [COMMIT_A]: { "tiny-Q4_K_M.gguf": "new" }, [COMMIT_B]: { "tiny-Q4_K_M.gguf": "old" } },
      refs: { main: COMMIT_A },
    });

    expect(await names(store)).toEqual([
      `hf:${REPO}:tiny-Q4_K_M.gguf`,
      `hf:${REPO}:tiny-Q4_K_M.gguf@${COMMIT_B}`,
    ]);
  });
});

describe("entries that are no model repository", () => {
  it("are ignored", async () => {
    const { store, root } = await cacheOf({
      snapshots: { [COMMIT_A]: { "tiny-Q4_K_M.gguf": "four" } },
      refs: { main: COMMIT_A },
    });
    const cacheDir = path.dirname(root);
    await mkdir(path.join(cacheDir, "datasets--ada--set", "snapshots", COMMIT_A), { recursive: true });
    await mkdir(path.join(cacheDir, "models--ada--empty"));
    await mkdir(path.join(cacheDir, ".locks"));
    await mkdir(path.join(root, "snapshots", "not-a-commit"));
    await writeFile(path.join(cacheDir, "models--ada--file"), "");
    await writeFile(path.join(root, "refs", "broken"), "no commit");

    expect(await names(store)).toEqual([`hf:${REPO}:tiny-Q4_K_M.gguf`]);
  });

  it.skipIf(!FOLDERS_HAVE_LINKS)("are not followed through a link to a folder in a snapshot", async () => {
    const { store, root } = await cacheOf({ snapshots: { [COMMIT_A]: { "tiny-Q4_K_M.gguf": "four" } } });
    await linkFolder(root, path.join(root, "snapshots", COMMIT_A, "loop"));
    await linkFolder(root, path.join(root, "snapshots", COMMIT_A, "folder.gguf"));

    expect(await names(store)).toEqual([`hf:${REPO}:tiny-Q4_K_M.gguf`]);
  });

  it("include a cache folder that does not exist yet", async () => {
    const store = offline(path.join(await temporaryFolder(), "none"));

    expect(await store.list()).toEqual([]);
    expect(await store.find(SPEC)).toBeUndefined();
  });

  it.skipIf(!FOLDERS_HAVE_LINKS)("exclude a repository behind a link out of the cache", async () => {
    const outer = await temporaryFolder();
    const root = await otherToolsRepo(path.join(outer, "elsewhere"), REPO, {
      snapshots: { [COMMIT_A]: { "tiny-Q4_K_M.gguf": "four" } },
    });
    await mkdir(path.join(outer, "cache"));
    await linkFolder(root, path.join(outer, "cache", path.basename(root)));

    expect(await offline(path.join(outer, "cache")).list()).toEqual([]);
  });

  it.skipIf(!FOLDERS_HAVE_LINKS)("do not affect a cache folder that is a link itself", async () => {
    const outer = await temporaryFolder();
    await otherToolsRepo(path.join(outer, "elsewhere"), REPO, {
      snapshots: { [COMMIT_A]: { "tiny-Q4_K_M.gguf": "four" } },
    });
    await linkFolder(path.join(outer, "elsewhere"), path.join(outer, "cache"));

    expect(await names(offline(path.join(outer, "cache")))).toEqual([`hf:${REPO}:tiny-Q4_K_M.gguf`]);
  });
});

it.skipIf(process.platform === "win32")(
  "running out of file descriptors is reported instead of missing models",
  async () => {
    const cacheDir = await temporaryFolder();
    await otherToolsRepo(cacheDir, REPO, {
      snapshots: { [COMMIT_A]: { "tiny-Q4_K_M.gguf": "four" } },
      refs: { main: COMMIT_A },
    });
    const store = JSON.stringify(path.resolve("src/models/hub/disk-hub-store.ts"));
    const spec = JSON.stringify(SPEC);
    const script = `
      import { openSync } from "node:fs";
      import { DiskHubStore } from ${store};
      const store = new DiskHubStore({ cacheDir: ${JSON.stringify(cacheDir)}, hubUrl: "https://hub.invalid" });
      await store.find(${spec});
      try { for (;;) openSync("/dev/null"); } catch {}
      console.log(await store.find(${spec}).catch(({ code }) => code));`;
    const { stdout } = await promisify(execFile)("sh", [
      "-c",
      'ulimit -n 64; exec "$0" --input-type=module -e "$1"',
      process.execPath,
      script,
    ]);
    expect(stdout.trim()).toBe("EMFILE");
  },
);
