import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, utimes, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { FolderLock } from "../../../../src/files/locks.ts";
import { sha256 } from "../../../support/fixture-hub-content.ts";
import { content, failureOf, fixtureHub, pull, REPO, SPEC, storeAt, untilBytes } from "./hub-test.ts";
import { temporaryFolder } from "../temporary-folder.ts";

const SIZE = 200_000;
const STORED = /^storage GET \/stored\//;

async function scene() {
  const bytes = content(SIZE);
  const other = content(1000);
  const files = { "tiny-Q4_K_M.gguf": bytes, "tiny-Q8_0.gguf": other };
  const hub = await fixtureHub({ repos: { [REPO]: { files, refs: { "v1.0": "c".repeat(40) } } } });
  const cacheDir = await temporaryFolder();
  const root = path.join(cacheDir, "models--ada--tiny-GGUF");
  const lock = path.join(cacheDir, ".locks", "models--ada--tiny-GGUF", `${sha256(bytes)}.pull`);
  return { bytes, hub, cacheDir, root, lock };
}

/** Makes the storage server pause in the middle of its next body until the returned function is called. */
function pauseNext(hub: Awaited<ReturnType<typeof fixtureHub>>): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  hub.failNext(STORED, { pause: { after: 100_000, until: promise } });
  return resolve;
}

function storageRequests(hub: Awaited<ReturnType<typeof fixtureHub>>): number {
  return hub.requests.filter((seen) => seen.server === "storage").length;
}

describe("two pulls of one file", () => {
  it("share one download", async () => {
    const { hub, cacheDir, bytes } = await scene();
    const goOn = pauseNext(hub);
    const { store } = storeAt(cacheDir, hub);
    const first = untilBytes(1);
    const second = untilBytes(1);
    const pulls = [pull(store, first), pull(store, second)];
    await Promise.all([first.reached, second.reached]);
    goOn();

    const models = await Promise.all(pulls);

    expect(models[0]).toEqual(models[1]);
    expect(sha256(await readFile(models[0]!.files[0]!))).toBe(sha256(bytes));
    expect(storageRequests(hub)).toBe(1);
  });

  it("share a download across revisions, each with its own snapshot", async () => {
    const { hub, cacheDir, root } = await scene();
    const { store } = storeAt(cacheDir, hub);

    const [main, tag] = await Promise.all([
      pull(store),
      pull(store, { spec: { ...SPEC, revision: "v1.0" } }),
    ]);

    expect(storageRequests(hub)).toBe(1);
    expect(tag.revision).toBe("c".repeat(40));
    expect(tag.spec).toBe(`hf:${REPO}:tiny-Q4_K_M.gguf@v1.0`);
    expect((await readdir(path.join(root, "snapshots"))).toSorted()).toEqual(
      [main.revision, tag.revision].toSorted(),
    );
  });

  it("continue if one of them leaves", async () => {
    const { hub, cacheDir } = await scene();
    const goOn = pauseNext(hub);
    const { store } = storeAt(cacheDir, hub);
    const leaving = new AbortController();
    const first = untilBytes(1);
    const second = untilBytes(1);
    const left = failureOf(pull(store, { ...first, signal: leaving.signal }));
    const stays = pull(store, second);
    await Promise.all([first.reached, second.reached]);

    leaving.abort(new Error("bye"));
    expect(await left).toEqual(new Error("bye"));
    goOn();

    expect(await stays).toMatchObject({ repo: REPO });
    expect(storageRequests(hub)).toBe(1);
  });

  it("stop if both leave, and a third one resumes", async () => {
    const { hub, cacheDir, lock } = await scene();
    pauseNext(hub);
    const { store } = storeAt(cacheDir, hub);
    const leaving = new AbortController();
    const first = untilBytes(1);
    const second = untilBytes(1);
    const left = [first, second].map((wait) => failureOf(pull(store, { ...wait, signal: leaving.signal })));
    await Promise.all([first.reached, second.reached]);

    leaving.abort(new Error("bye"));
    // Not awaited, so that the third pull begins while the first two are still cleaning up.
    const third = pull(store);

    expect(await Promise.all(left)).toEqual([new Error("bye"), new Error("bye")]);
    expect(await third).toMatchObject({ repo: REPO });
    expect(hub.requests.at(-1)?.headers.range).toMatch(/^bytes=[1-9]\d*-$/);
    expect(await readdir(path.dirname(lock))).toEqual([]);
  });

  it("fail together", async () => {
    const { hub, cacheDir } = await scene();
    hub.failNext(STORED, { corrupt: true });
    const { store } = storeAt(cacheDir, hub);

    const errors = await Promise.all([failureOf(pull(store)), failureOf(pull(store))]);

    expect(errors).toMatchObject([{ code: "checksum_mismatch" }, { code: "checksum_mismatch" }]);
  });

  it("do not start with an aborted signal", async () => {
    const { hub, cacheDir } = await scene();
    const { store } = storeAt(cacheDir, hub);

    expect(await failureOf(pull(store, { signal: AbortSignal.abort(new Error("no")) }))).toEqual(
      new Error("no"),
    );
    expect(hub.requests).toEqual([]);
  });
});

describe("two processes with one file", () => {
  it("share one download: the second waits for the first and shows its progress", async () => {
    const { hub, cacheDir } = await scene();
    const goOn = pauseNext(hub);
    const first = untilBytes(1);
    const owner = pull(storeAt(cacheDir, hub).store, first);
    await first.reached;

    const seen: number[] = [];
    let checks = 0;
    const waiter = storeAt(cacheDir, hub, {
      sleep: async () => {
        // The owner still works at the first check, and has finished at the second.
        if (checks++ === 0) return;
        goOn();
        await owner;
      },
    });
    const model = await pull(waiter.store, {
      onProgress: (line) => void (line.status === "downloading" && seen.push(line.downloadedBytes)),
    });

    expect(model).toEqual(await owner);
    expect(storageRequests(hub)).toBe(1);
    expect(checks).toBe(2);
    expect(seen.some((bytes) => bytes > 0 && bytes < SIZE)).toBe(true);
    expect(seen.at(-1)).toBe(SIZE);
  });

  it("do not wait for an owner that has ended, whatever its lock file contains", async () => {
    const { hub, cacheDir, lock } = await scene();
    await mkdir(path.dirname(lock), { recursive: true });
    await writeFile(lock, "");
    const { store, waits } = storeAt(cacheDir, hub);

    expect(await pull(store)).toMatchObject({ repo: REPO });
    expect(waits).toEqual([]);
    expect(await readdir(path.dirname(lock))).toEqual([]);
  });

  it("wait as long as the owner works", async () => {
    const { hub, cacheDir, lock, root, bytes } = await scene();
    const owner = await new FolderLock(cacheDir).claim(lock);
    let checks = 0;
    const { store } = storeAt(cacheDir, hub, {
      sleep: async () => {
        if (++checks < 10) return;
        await mkdir(path.join(root, "blobs"), { recursive: true });
        await writeFile(path.join(root, "blobs", sha256(bytes)), bytes);
        await owner?.[Symbol.asyncDispose]();
      },
    });

    expect(await pull(store)).toMatchObject({ repo: REPO });
    expect(checks).toBe(10);
    expect(storageRequests(hub)).toBe(0);
  });

  it("may pull and delete the same model repeatedly, and the last pull remains", async () => {
    const { hub, cacheDir, bytes } = await scene();
    const one = storeAt(cacheDir, hub).store;
    const other = storeAt(cacheDir, hub).store;
    const tag = { ...SPEC, revision: "v1.0" };
    for (let round = 0; round < 5; round++) {
      const main = await pull(one);
      // Adds the same blob to another snapshot while the first is deleted.
      const [model] = await Promise.all([pull(other, { spec: tag }), one.remove(main)]);

      expect(sha256(await readFile(model.files[0]!))).toBe(sha256(bytes));
    }
  });
});

describe("leftovers of killed processes", () => {
  it("are removed, except for files in use and recent partial downloads", async () => {
    const { hub, cacheDir, root, lock, bytes } = await scene();
    const { store } = storeAt(cacheDir, hub);
    await pull(store);
    const locks = path.dirname(lock);
    const owned = path.join(locks, "00.pull");
    const lately = path.join(root, "blobs", "aa.incomplete");
    const long = new Date(Date.now() - 40 * 24 * 60 * 60 * 1000);
    await using owner = await new FolderLock(cacheDir).claim(owned);
    expect(owner).toBeDefined();
    for (const file of [
      path.join(root, ".next"),
      path.join(locks, "11.pull"),
      path.join(locks, "of-another-tool.lock"),
      path.join(root, "blobs", "00.incomplete"),
      path.join(root, "blobs", "11.incomplete"),
      lately,
    ]) {
      await writeFile(file, "");
      if (file !== lately) await utimes(file, long, long);
    }

    await store.removeLeftovers();

    expect((await readdir(locks)).toSorted()).toEqual(["00.pull", "of-another-tool.lock"]);
    expect((await readdir(root)).toSorted()).toEqual(["blobs", "refs", "snapshots"]);
    expect((await readdir(path.join(root, "blobs"))).toSorted()).toEqual(
      ["00.incomplete", "aa.incomplete", sha256(bytes)].toSorted(),
    );
  });

  it("are ignored while there is no cache folder", async () => {
    const { hub } = await scene();
    const cacheDir = path.join(await temporaryFolder(), "none");
    await storeAt(cacheDir, hub).store.removeLeftovers();
    expect(existsSync(cacheDir)).toBe(false);
  });
});
