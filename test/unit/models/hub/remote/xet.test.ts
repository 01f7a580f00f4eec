import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { sha256 } from "../../../../support/fixture-hub-content.ts";
import { content, failureOf, fixtureHub, pull, REPO, storeAt } from "../hub-test.ts";
import { temporaryFolder } from "../../temporary-folder.ts";

const SIZE = 20_000;

async function scene(gatedTo?: readonly string[]) {
  const bytes = content(SIZE);
  const files = { "tiny-Q4_K_M.gguf": { content: bytes, xet: true } };
  const hub = await fixtureHub({ repos: { [REPO]: gatedTo ? { files, gatedTo } : { files } } });
  const cacheDir = await temporaryFolder();
  const paths = () =>
    hub.requests.filter((seen) => seen.server === "storage").map((seen) => seen.path.split("/")[1]);
  return { bytes, hub, cacheDir, paths };
}

describe("a repository in chunk storage", () => {
  it("is assembled from its chunks", async () => {
    const { bytes, hub, cacheDir, paths } = await scene();

    const model = await pull(storeAt(cacheDir, hub).store);

    expect(sha256(await readFile(model.files[0]!))).toBe(sha256(bytes));
    expect(paths()).toEqual(["v2", "xorbs"]);
  });

  it("resumes from the partial file on disk", async () => {
    const { bytes, hub, cacheDir, paths } = await scene();
    const blobs = path.join(cacheDir, "models--ada--tiny-GGUF", "blobs");
    await mkdir(blobs, { recursive: true });
    await writeFile(path.join(blobs, `${sha256(bytes)}.incomplete`), bytes.subarray(0, 12_345));

    const model = await pull(storeAt(cacheDir, hub).store);

    expect(sha256(await readFile(model.files[0]!))).toBe(sha256(bytes));
    expect(paths()).toEqual(["v2", "xorbs"]);
    const requests = hub.requests.find((seen) => seen.path.startsWith("/v2/"));
    expect(requests?.headers.range).toBe(`bytes=12345-${SIZE - 1}`);
  });

  it.each([
    ["fails", { status: 500 }],
    ["sends chunks that are none", { corrupt: true }],
  ])("is downloaded by plain HTTP if chunk storage %s", async (_what, fault) => {
    const { bytes, hub, cacheDir, paths } = await scene();
    hub.failNext(/^storage GET \/xorbs\//, fault, 10);

    const model = await pull(storeAt(cacheDir, hub).store);

    expect(sha256(await readFile(model.files[0]!))).toBe(sha256(bytes));
    expect(paths().at(-1)).toBe("stored");
  });

  it("is downloaded by plain HTTP if the hub no longer offers chunks", async () => {
    const { bytes, hub, cacheDir, paths } = await scene();
    hub.failNext(/^hub GET .*\/resolve\//, {
      redirect: `${hub.storageUrl}/stored/${REPO}/tiny-Q4_K_M.gguf`,
    });

    const model = await pull(storeAt(cacheDir, hub).store);

    expect(sha256(await readFile(model.files[0]!))).toBe(sha256(bytes));
    expect(paths()).toEqual(["stored", "stored"]);
  });

  it("reports a gated repository immediately", async () => {
    const { hub, cacheDir, paths } = await scene(["hf_friend"]);
    const { store, waits } = storeAt(cacheDir, hub);

    expect(await failureOf(pull(store))).toMatchObject({ code: "hub_access_denied" });
    expect(waits).toEqual([]);
    expect(paths()).toEqual([]);
  });
});
