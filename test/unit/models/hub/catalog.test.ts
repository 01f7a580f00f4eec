import { readdir } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { HubCatalog } from "../../../../src/models/hub/hub-catalog.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { content, failureOf, fixtureHub, pull, REPO, SPEC, storeAt, untilBytes } from "./hub-test.ts";

const signal = new AbortController().signal;
const GIB = 1024 ** 3;

async function scene() {
  const huge = { content: "part", claimedSize: 20 * GIB };
  const hub = await fixtureHub({
    repos: {
      [REPO]: {
        files: {
          "tiny-Q8_0.gguf": content(2000),
          "tiny-Q4_K_M.gguf": content(1000),
          "mmproj-tiny-F16.gguf": content(10),
          "F16/tiny-F16-00001-of-00002.gguf": huge,
          "F16/tiny-F16-00002-of-00002.gguf": huge,
          "other/tiny-Q8_0.gguf": content(3000),
          "README.md": "A model.",
        },
        info: {
          downloads: 5,
          likes: 2,
          lastModified: "2026-01-02T03:04:05.000Z",
          pipeline_tag: "text-generation",
          gguf: { total: 1234, architecture: "llama", context_length: 2048 },
        },
      },
      "bob/tiny-large-GGUF": {
        files: { "tiny-Q8_0.gguf": "x" },
        info: { downloads: 9 },
        gatedTo: ["secret"],
      },
      "bob/tiny-safetensors": { files: { "tiny.safetensors": "x" } },
      "bob/hidden-tiny": { files: { "tiny-Q8_0.gguf": "x" }, privateTo: ["secret"] },
    },
  });
  const cacheDir = await temporaryFolder();
  const { store } = storeAt(cacheDir, hub);
  const catalog = new HubCatalog(store);
  return { hub, cacheDir, store, catalog };
}

describe("searching the hub", () => {
  it("finds repositories with GGUF files, the most downloaded first", async () => {
    const { catalog } = await scene();
    expect(await catalog.search("tiny", 10, signal)).toEqual([
      {
        repo: "bob/tiny-large-GGUF",
        downloads: 9,
        likes: 0,
        updatedAt: undefined,
        isGated: true,
        task: undefined,
      },
      {
        repo: REPO,
        downloads: 5,
        likes: 2,
        updatedAt: "2026-01-02T03:04:05.000Z",
        isGated: false,
        task: "text-generation",
      },
    ]);
    expect(await catalog.search("tiny", 1, signal)).toHaveLength(1);
    expect(await catalog.search("nothing of the kind", 10, signal)).toEqual([]);
  });

  it("sends the token and requests only the needed fields", async () => {
    const { hub, cacheDir } = await scene();
    const catalog = new HubCatalog(storeAt(cacheDir, hub, { token: "secret" }).store);
    const found = await catalog.search("hidden", 10, signal);
    expect(found.map(({ repo }) => repo)).toEqual(["bob/hidden-tiny"]);
    expect(hub.requests.at(-1)?.path).toMatch(/^\/api\/models\?search=hidden&filter=gguf&.*expand=downloads/);
  });

  it.each([
    ["is unavailable", { status: 503 }, "hub_unreachable"],
    ["cannot search", { status: 404 }, "hub_answer_invalid"],
    ["answers something else", { body: '{"models":[]}' }, "hub_answer_invalid"],
    ["refuses the token", { status: 401, body: '{"error":"Invalid credentials"}' }, "hub_access_denied"],
  ])("reports that the hub %s", async (_what, fault, code) => {
    const { hub, catalog } = await scene();
    hub.failNext(/^hub GET \/api\/models\?/, fault, 20);
    expect(await failureOf(catalog.search("tiny", 10, signal))).toMatchObject({ code });
  });
});

describe("the models of a repository", () => {
  it("are listed per quantization, with the size of all shards and the spec to pull", async () => {
    const { catalog } = await scene();
    const { offers, ...info } = await catalog.offers(REPO, signal);
    expect(info).toEqual({
      repo: REPO,
      isGated: false,
      task: "text-generation",
      parameters: 1234,
      trainedContext: 2048,
    });
    const common = { shards: 1, partialBytes: 0, isOnDisk: false };
    expect(offers).toEqual([
      {
        ...common,
        spec: `hf:${REPO}:Q4_K_M`,
        file: "tiny-Q4_K_M.gguf",
        quantization: "Q4_K_M",
        sizeBytes: 1000,
      },
      { ...common, spec: `hf:${REPO}:Q8_0`, file: "tiny-Q8_0.gguf", quantization: "Q8_0", sizeBytes: 2000 },
      // The quantization alone would mean the other file.
      {
        ...common,
        spec: `hf:${REPO}:other/tiny-Q8_0.gguf`,
        file: "other/tiny-Q8_0.gguf",
        quantization: "Q8_0",
        sizeBytes: 3000,
      },
      {
        ...common,
        spec: `hf:${REPO}:F16`,
        file: "F16/tiny-F16-00001-of-00002.gguf",
        shards: 2,
        quantization: "F16",
        sizeBytes: 40 * GIB,
      },
    ]);
  });

  it("are marked if they are complete or partial on disk", async () => {
    const { hub, store, catalog } = await scene();
    await pull(store, { spec: { ...SPEC, quant: "Q4_K_M" } });
    const controller = new AbortController();
    const { reached, onProgress } = untilBytes(500);
    const never = Promise.withResolvers<void>();
    hub.failNext(/^storage GET/, { pause: { after: 500, until: never.promise } });
    const paused = pull(store, { spec: { ...SPEC, quant: "Q8_0" }, onProgress, signal: controller.signal });
    await reached;
    controller.abort();
    await failureOf(paused);
    const { offers } = await catalog.offers(REPO, signal);
    expect(offers.map(({ isOnDisk, partialBytes }) => [isOnDisk, partialBytes])).toEqual([
      [true, 0],
      [false, 500],
      [false, 0],
      [false, 0],
    ]);
    never.resolve();
  });

  it.each([{ body: "[]" }, { status: 400 }])(
    "are listed by a hub that answers other requests with %j",
    async (fault) => {
      const { hub, catalog } = await scene();
      hub.failNext(/^hub GET \/api\/models\/ada\/tiny-GGUF\?/, fault);
      const { offers, parameters } = await catalog.offers(REPO, signal);
      expect([offers.length, parameters]).toEqual([4, undefined]);
    },
  );

  it.each([
    ["bob/none", "hub_repo_not_found"],
    ["bob/tiny-safetensors", "no_gguf_in_repo"],
    ["../etc", "invalid_model_name"],
    ["bob", "invalid_model_name"],
  ])("of %s are rejected with %s", async (repo, code) => {
    const { catalog } = await scene();
    expect(await failureOf(catalog.offers(repo, signal))).toMatchObject({ code });
  });
});

/** Pulls until half of the file is on disk. */
async function interrupt() {
  const all = await scene();
  const { hub, store } = all;
  const { reached, onProgress } = untilBytes(1000);
  const never = Promise.withResolvers<void>();
  hub.failNext(/^storage GET/, { pause: { after: 1000, until: never.promise } });
  const controller = new AbortController();
  const request = { spec: { ...SPEC, quant: "Q8_0" }, projector: undefined };
  const pulling = pull(store, { ...request, onProgress, signal: controller.signal });
  await reached;
  const blobs = path.join(all.cacheDir, "models--ada--tiny-GGUF", "blobs");
  return { ...all, request, controller, pulling, blobs, letGo: never.resolve };
}

describe("discarding an interrupted pull", () => {
  it("deletes its partial files, so that the next pull starts from the beginning", async () => {
    const { hub, store, request, controller, pulling, blobs, letGo } = await interrupt();
    const ended = failureOf(pulling);
    controller.abort();
    // Immediately, while the pull still closes its file.
    expect(await store.discard(request, signal)).toBe(1000);
    await ended;
    expect(await readdir(blobs)).toEqual([]);
    expect(await store.discard(request, signal)).toBe(0);
    letGo();
    await pull(store, request);
    expect(hub.downloads.at(-1)?.headers.range).toBeUndefined();
  });

  it("requests the file list from the hub only in another daemon than that of the pull", async () => {
    const { hub, store, cacheDir, request, controller, pulling, blobs, letGo } = await interrupt();
    controller.abort();
    await failureOf(pulling);
    hub.failNext(/^hub/, { status: 500 }, 20);
    const other = storeAt(cacheDir, hub).store;
    expect(await failureOf(other.discard(request, signal))).toMatchObject({ code: "hub_unreachable" });
    expect(await readdir(blobs)).toHaveLength(1);
    expect(await store.discard(request, signal)).toBe(1000);
    letGo();
  });

  it("is rejected while the download is in progress", async () => {
    const { store, request, controller, pulling, letGo } = await interrupt();
    expect(await failureOf(store.discard(request, signal))).toMatchObject({ code: "model_busy" });
    controller.abort();
    await failureOf(pulling);
    letGo();
  });
});
