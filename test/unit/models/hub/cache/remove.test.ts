import { access, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { DiskHubStore } from "../../../../../src/models/hub/disk-hub-store.ts";
import { sha256 } from "../../../../support/fixture-hub-content.ts";
import { FILES_HAVE_LINKS } from "../../../../support/links.ts";
import { REPO, SPEC } from "../hub-test.ts";
import { LOCK_FILE } from "../../../../../src/files/locks.ts";
import { temporaryFolder } from "../../temporary-folder.ts";
import {
  COMMIT_A,
  COMMIT_B,
  NAMES_OF_BLOBS,
  otherToolsRepo,
  type OtherToolsRepo,
} from "./other-tools-cache.ts";

async function storeOf(layout: OtherToolsRepo) {
  const cacheDir = await temporaryFolder();
  const root = await otherToolsRepo(cacheDir, REPO, layout);
  const store = new DiskHubStore({ cacheDir, hubUrl: "https://hub.invalid" });
  const remove = async (spec: Partial<typeof SPEC> = {}) => {
    const model = await store.find({ ...SPEC, ...spec });
    await store.remove(model!);
    return model!;
  };
  return { cacheDir, root, store, remove };
}

async function blobs(root: string): Promise<string[]> {
  return (await readdir(path.join(root, "blobs"))).toSorted();
}

describe.each(NAMES_OF_BLOBS)("removing a model from the cache, whose files are %s,", (files) => {
  const cacheOf = async (layout: OtherToolsRepo) => await storeOf({ files, ...layout });

  it("leaves nothing of a repository without other models", async () => {
    const { cacheDir, root, store, remove } = await cacheOf({
      snapshots: { [COMMIT_A]: { "deep/tiny-Q4_K_M.gguf": "four" } },
      refs: { main: COMMIT_A },
    });
    await writeFile(path.join(root, "blobs", `${sha256("half")}.incomplete`), "ha");

    await remove();

    expect(await readdir(cacheDir)).toEqual([LOCK_FILE]);
    expect(await store.list()).toEqual([]);
  });

  it("leaves other models and other files", async () => {
    const { root, store, remove } = await cacheOf({
      snapshots: {
        [COMMIT_A]: { "tiny-Q4_K_M.gguf": "four", "tiny-Q8_0.gguf": "eight", "README.md": "text" },
      },
      refs: { main: COMMIT_A },
    });

    await remove({ quant: "Q8_0" });

    expect((await store.list()).map(({ file }) => file)).toEqual(["tiny-Q4_K_M.gguf"]);
    expect(await blobs(root)).toEqual([sha256("four"), sha256("text")].toSorted());
    expect(await readFile(path.join(root, "refs", "main"), "utf8")).toBe(COMMIT_A);

    await remove();

    expect(await store.list()).toEqual([]);
    expect(await readdir(path.join(root, "snapshots", COMMIT_A))).toEqual(["README.md"]);
  });

  it("deletes every shard", async () => {
    const { cacheDir, remove } = await cacheOf({
      snapshots: { [COMMIT_A]: { "big-00001-of-00002.gguf": "1", "big-00002-of-00002.gguf": "2" } },
      refs: { main: COMMIT_A },
    });

    await remove();

    expect(await readdir(cacheDir)).toEqual([LOCK_FILE]);
  });

  it("keeps the projector while another model is beside it", async () => {
    const { cacheDir, root, remove } = await cacheOf({
      snapshots: {
        [COMMIT_A]: { "tiny-Q4_K_M.gguf": "four", "tiny-Q8_0.gguf": "eight", "mmproj-F16.gguf": "eye" },
      },
      refs: { main: COMMIT_A },
    });

    await remove({ quant: "Q8_0" });
    expect(await blobs(root)).toEqual([sha256("four"), sha256("eye")].toSorted());

    await remove();
    expect(await readdir(cacheDir)).toEqual([LOCK_FILE]);
  });

  it("keeps a blob that another revision uses", async () => {
    const { root, store, remove } = await cacheOf({
      snapshots: { [COMMIT_A]: { "tiny-Q4_K_M.gguf": "same" }, [COMMIT_B]: { "tiny-Q4_K_M.gguf": "same" } },
      refs: { main: COMMIT_A, "v1.0": COMMIT_B },
    });

    await remove();

    expect(await blobs(root)).toEqual([sha256("same")]);
    expect(await readdir(path.join(root, "snapshots"))).toEqual([COMMIT_B]);
    expect(await readdir(path.join(root, "refs"))).toEqual(["v1.0"]);
    expect((await store.list()).map(({ spec }) => spec)).toEqual([`hf:${REPO}:tiny-Q4_K_M.gguf@v1.0`]);
  });

  it("keeps a blob that a file of another kind uses", async () => {
    const { root, remove } = await cacheOf({
      snapshots: { [COMMIT_A]: { "tiny-Q4_K_M.gguf": "same", "model.bin": "same" } },
      refs: { main: COMMIT_A },
    });

    await remove();

    expect(await readFile(path.join(root, "snapshots", COMMIT_A, "model.bin"), "utf8")).toBe("same");
  });

  it("deletes older snapshots of the same content without a ref", async () => {
    const { cacheDir, remove } = await cacheOf({
      snapshots: { [COMMIT_A]: { "tiny-Q4_K_M.gguf": "same" }, [COMMIT_B]: { "tiny-Q4_K_M.gguf": "same" } },
      refs: { main: COMMIT_A },
    });

    await remove();

    expect(await readdir(cacheDir)).toEqual([LOCK_FILE]);
  });

  it("leaves older snapshots of other content", async () => {
    const { root, store, remove } = await cacheOf({
      snapshots: { [COMMIT_A]: { "tiny-Q4_K_M.gguf": "new" }, [COMMIT_B]: { "tiny-Q4_K_M.gguf": "old" } },
      refs: { main: COMMIT_A },
    });

    await remove();

    expect(await blobs(root)).toEqual([sha256("old")]);
    expect((await store.find(SPEC))?.revision).toBe(COMMIT_B);
  });

  it("has no effect the second time", async () => {
    const { store, remove } = await cacheOf({
      snapshots: { [COMMIT_A]: { "tiny-Q4_K_M.gguf": "four" } },
      refs: { main: COMMIT_A },
    });
    const model = await remove();

    await store.remove(model);

    expect(await store.list()).toEqual([]);
  });
});

it.skipIf(!FILES_HAVE_LINKS)(
  "removing a model deletes nothing outside its repository, whatever its links point at",
  async () => {
    const { cacheDir, store } = await storeOf({ snapshots: { [COMMIT_A]: { "tiny-Q4_K_M.gguf": "four" } } });
    const other = await otherToolsRepo(cacheDir, "ada/other", {
      snapshots: { [COMMIT_A]: { "other.gguf": "other" } },
      refs: { main: COMMIT_A },
    });
    const hostile = path.join(cacheDir, "models--ada--hostile", "snapshots", COMMIT_A);
    await mkdir(hostile, { recursive: true });
    await symlink(path.join(other, "blobs", sha256("other")), path.join(hostile, "x.gguf"));

    const model = await store.find({ owner: "ada", repo: "hostile" });
    await store.remove(model!);

    expect(await readFile(path.join(other, "blobs", sha256("other")), "utf8")).toBe("other");
    await expect(access(hostile)).rejects.toThrow("ENOENT");
  },
);
