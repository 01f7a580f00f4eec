import { lstat, readdir, readFile, stat } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it } from "vitest";
import type { PullProgress } from "../../../../src/models/hub/hub-types.ts";
import { sha256 } from "../../../support/fixture-hub-content.ts";
import { FILES_HAVE_LINKS } from "../../../support/links.ts";
import { content, fixtureHub, pull, REPO, SPEC, storeAt } from "./hub-test.ts";
import { temporaryFolder } from "../temporary-folder.ts";

const SIZE = 50_000;

describe("pulling from the hub", () => {
  it("stores a file in the hub's standard layout", async () => {
    const bytes = content(SIZE);
    const hub = await fixtureHub({ repos: { [REPO]: { files: { "tiny-Q4_K_M.gguf": bytes } } } });
    const cacheDir = await temporaryFolder();
    const { store } = storeAt(cacheDir, hub);

    const model = await pull(store);

    const root = path.join(cacheDir, "models--ada--tiny-GGUF");
    const snapshot = path.join(root, "snapshots", model.revision, "tiny-Q4_K_M.gguf");
    expect(model).toEqual({
      spec: `hf:${REPO}:tiny-Q4_K_M.gguf`,
      repo: REPO,
      revision: model.revision,
      file: "tiny-Q4_K_M.gguf",
      files: [snapshot],
      projector: undefined,
      sizeBytes: SIZE,
    });
    expect(sha256(await readFile(snapshot))).toBe(sha256(bytes));
    expect(await readdir(path.join(root, "blobs"))).toEqual([sha256(bytes)]);
    expect(await readFile(path.join(root, "refs", "main"), "utf8")).toBe(model.revision);
    expect(await readdir(path.join(cacheDir, ".locks", "models--ada--tiny-GGUF"))).toEqual([]);
    expect((await lstat(snapshot)).isSymbolicLink()).toBe(FILES_HAVE_LINKS);
    expect((await stat(snapshot)).ino).toBe((await stat(path.join(root, "blobs", sha256(bytes)))).ino);
  });

  it("reports increasing progress over all files, and then verifying", async () => {
    const files = {
      "big-00001-of-00002.gguf": content(SIZE),
      "big-00002-of-00002.gguf": content(SIZE + 1),
    };
    const hub = await fixtureHub({ repos: { [REPO]: { files } } });
    const { store } = storeAt(await temporaryFolder(), hub);
    const seen: PullProgress[] = [];

    const model = await pull(store, { onProgress: (progress) => seen.push(progress) });

    expect(model.files).toHaveLength(2);
    const total = 2 * SIZE + 1;
    expect(model.sizeBytes).toBe(total);
    expect(seen[0]).toEqual({ status: "downloading", downloadedBytes: 0, totalBytes: total });
    expect(seen.at(-2)).toEqual({ status: "downloading", downloadedBytes: total, totalBytes: total });
    expect(seen.at(-1)).toEqual({ status: "verifying" });
    const bytes = seen.flatMap((line) => (line.status === "downloading" ? [line.downloadedBytes] : []));
    expect(bytes).toEqual(bytes.toSorted((a, b) => a - b));
  });

  it("downloads nothing twice", async () => {
    const hub = await fixtureHub({ repos: { [REPO]: { files: { "tiny-Q4_K_M.gguf": content(SIZE) } } } });
    const { store } = storeAt(await temporaryFolder(), hub);
    const first = await pull(store);
    const downloads = hub.downloads.length;

    expect(await pull(store)).toEqual(first);
    expect(hub.downloads).toHaveLength(downloads);
    expect(await store.find(SPEC)).toEqual(first);
  });
});
