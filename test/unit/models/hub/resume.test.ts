import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { sha256 } from "../../../support/fixture-hub-content.ts";
import type { FixtureHub } from "../../../support/fixture-hub.ts";
import { content, failureOf, fixtureHub, pull, REPO, SPEC, storeAt, untilBytes } from "./hub-test.ts";
import { temporaryFolder } from "../temporary-folder.ts";

const SIZE = 300_000;
const FILE = "tiny-Q4_K_M.gguf";
const STORED = /^storage GET \/stored\//;

interface Scene {
  readonly bytes: Buffer;
  readonly hub: FixtureHub;
  readonly cacheDir: string;
  readonly blobs: string;
}

async function scene(): Promise<Scene> {
  const bytes = content(SIZE);
  const hub = await fixtureHub({ repos: { [REPO]: { files: { [FILE]: bytes } } } });
  const cacheDir = await temporaryFolder();
  return { bytes, hub, cacheDir, blobs: path.join(cacheDir, "models--ada--tiny-GGUF", "blobs") };
}

/** Range headers of requests to the storage server; "all" for a request without one. */
function ranges(hub: FixtureHub): string[] {
  return hub.requests.filter((seen) => seen.server === "storage").map((seen) => seen.headers.range ?? "all");
}

/** Creates the unfinished download of a killed process. */
async function leavePart({ blobs, bytes }: Scene, part: Buffer): Promise<void> {
  await mkdir(blobs, { recursive: true });
  await writeFile(path.join(blobs, `${sha256(bytes)}.incomplete`), part);
}

async function expectComplete({ blobs, bytes }: Scene, files: readonly string[]): Promise<void> {
  expect(sha256(await readFile(files[0]!))).toBe(sha256(bytes));
  expect(await readdir(blobs)).toEqual([sha256(bytes)]);
}

describe("an interrupted download", () => {
  it("resumes by range after a disconnection", async () => {
    const setting = await scene();
    setting.hub.failNext(STORED, { cutAfter: 200_000 });
    const { store, waits } = storeAt(setting.cacheDir, setting.hub);

    const { files } = await pull(store);

    await expectComplete(setting, files);
    const [first, second] = ranges(setting.hub);
    expect(first).toBe("all");
    expect(Number(/^bytes=(\d+)-$/.exec(second!)?.[1])).toBeGreaterThan(0);
    expect(waits).toEqual([500]);
  });

  it("resumes after another process was killed", async () => {
    const setting = await scene();
    await leavePart(setting, setting.bytes.subarray(0, 123_456));
    const { store } = storeAt(setting.cacheDir, setting.hub);

    const { files } = await pull(store);

    await expectComplete(setting, files);
    expect(ranges(setting.hub)).toEqual(["bytes=123456-"]);
  });

  it("resumes after it was cancelled", async () => {
    const setting = await scene();
    const never = new Promise<void>(() => {});
    setting.hub.failNext(STORED, { pause: { after: 100_000, until: never } });
    const abort = new AbortController();
    const { reached, onProgress } = untilBytes(1);
    const cancelled = pull(storeAt(setting.cacheDir, setting.hub).store, {
      onProgress,
      signal: abort.signal,
    });
    await reached;
    abort.abort(new Error("enough"));
    expect(await failureOf(cancelled)).toEqual(new Error("enough"));
    expect(await readdir(setting.blobs)).toEqual([`${sha256(setting.bytes)}.incomplete`]);

    const { store } = storeAt(setting.cacheDir, setting.hub);
    expect(await store.find(SPEC)).toBeUndefined();
    const { files } = await pull(store);

    await expectComplete(setting, files);
    expect(ranges(setting.hub)[1]).toMatch(/^bytes=[1-9]/);
  });

  it("is only renamed if every byte is there", async () => {
    const setting = await scene();
    await leavePart(setting, setting.bytes);
    const { store } = storeAt(setting.cacheDir, setting.hub);

    const { files } = await pull(store);

    await expectComplete(setting, files);
    expect(setting.hub.downloads).toEqual([]);
  });

  it("restarts if the part on disk belongs to another file", async () => {
    const setting = await scene();
    await leavePart(setting, content(1000));
    const { store } = storeAt(setting.cacheDir, setting.hub);

    const { files } = await pull(store);

    await expectComplete(setting, files);
    expect(ranges(setting.hub)).toEqual(["bytes=1000-", "all"]);
  });

  it("restarts if the part on disk is longer than the file", async () => {
    const setting = await scene();
    await leavePart(setting, content(SIZE + 1));
    const { store } = storeAt(setting.cacheDir, setting.hub);

    const { files } = await pull(store);

    await expectComplete(setting, files);
    expect(ranges(setting.hub)).toEqual(["all"]);
  });
});

describe("a server that fails in the middle of a file", () => {
  it.each([
    ["a 206 of another range", { headers: { "content-range": `bytes 0-${SIZE - 1}/${SIZE}` } }],
    [
      "a 206 of another file's length",
      { headers: { "content-range": `bytes 100000-${SIZE - 1}/${SIZE + 1}` } },
    ],
    ["a 206 without a range", { headers: { "content-range": "bytes" } }],
    ["a content-length that is too small", { endAfter: 10 }],
    ["a content-length that is too large", { headers: { "content-length": String(SIZE) } }],
    ["a body that ends too early", { endAfter: 10, append: new Uint8Array() }],
    ["an error page", { status: 502 }],
    ["a signed address that has run out", { status: 403 }],
  ])("is requested again after %s", async (_what, fault) => {
    const setting = await scene();
    await leavePart(setting, setting.bytes.subarray(0, 100_000));
    setting.hub.failNext(STORED, fault);
    const { store, waits } = storeAt(setting.cacheDir, setting.hub);

    const { files } = await pull(store);

    await expectComplete(setting, files);
    expect(waits).toEqual([500]);
    expect(ranges(setting.hub)).toHaveLength(2);
    expect(ranges(setting.hub)[0]).toBe("bytes=100000-");
    expect(ranges(setting.hub)[1]).toMatch(/^bytes=1000[01]0-$/);
  });

  it.each([
    ["ignores the range", { ignoreRange: true }],
    ["has become shorter", { status: 416 }],
    ["sends more than there is", { append: new Uint8Array(100) }],
  ])("makes the download restart if it %s", async (_what, fault) => {
    const setting = await scene();
    await leavePart(setting, setting.bytes.subarray(0, 100_000));
    setting.hub.failNext(STORED, fault);
    const { store } = storeAt(setting.cacheDir, setting.hub);

    const { files } = await pull(store);

    await expectComplete(setting, files);
    expect(ranges(setting.hub)).toEqual(["bytes=100000-", "all"]);
  });

  it("makes the download restart if the ETag changes", async () => {
    const setting = await scene();
    setting.hub.failNext(STORED, { cutAfter: 200_000, headers: { etag: '"one"' } });
    setting.hub.failNext(STORED, { headers: { etag: '"two"' }, corrupt: true });
    setting.hub.failNext(STORED, { headers: { etag: '"two"' } });
    const { store } = storeAt(setting.cacheDir, setting.hub);

    const { files } = await pull(store);

    await expectComplete(setting, files);
    expect(ranges(setting.hub)).toEqual(["all", expect.stringMatching(/^bytes=[1-9]/), "all"]);
  });

  it("makes the download restart if the hub no longer names its hash", async () => {
    const setting = await scene();
    await leavePart(setting, setting.bytes.subarray(0, 100_000));
    setting.hub.failNext(/^hub GET .*\/resolve\//, {
      redirect: `${setting.hub.storageUrl}/stored/gone`,
      headers: { "x-linked-etag": `"${sha256("another file")}"` },
    });
    setting.hub.failNext(/^storage GET \/stored\/gone/, {
      headers: { "content-range": "bytes 0-0/1" },
      status: 206,
    });
    const { store } = storeAt(setting.cacheDir, setting.hub);

    const { files } = await pull(store);

    await expectComplete(setting, files);
    expect(ranges(setting.hub).at(-1)).toBe("all");
  });

  it("is requested again if data stops arriving", async () => {
    const setting = await scene();
    const never = new Promise<void>(() => {});
    setting.hub.failNext(STORED, { pause: { after: 100, until: never } });
    const stallTimeoutMs = 60_000;
    const { store, waits } = storeAt(setting.cacheDir, setting.hub, { stallTimeoutMs });
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    onTestFinished(() => void vi.useRealTimers());
    const { reached, onProgress } = untilBytes(1);
    void reached.then(() => vi.advanceTimersByTime(stallTimeoutMs));

    const { files } = await pull(store, { onProgress });

    await expectComplete(setting, files);
    expect(waits).toEqual([500]);
  });

  it("is waited for as long as it requests", async () => {
    const setting = await scene();
    setting.hub.failNext(/^hub GET .*\/tree\//, { status: 429, headers: { "retry-after": "7" } });
    setting.hub.failNext(STORED, { status: 503, headers: { "retry-after": "3" } });
    const { store, waits } = storeAt(setting.cacheDir, setting.hub);

    const { files } = await pull(store);

    await expectComplete(setting, files);
    expect(waits).toEqual([7000, 3000]);
  });

  it("is reported if it requests a wait of minutes", async () => {
    const setting = await scene();
    setting.hub.failNext(/^hub GET /, { status: 429, headers: { "retry-after": "300" } });
    const { store, waits } = storeAt(setting.cacheDir, setting.hub);

    const error = await failureOf(pull(store));

    expect(error).toMatchObject({ code: "hub_unreachable", retryAfterSecs: 300 });
    expect(waits).toEqual([]);
  });

  it("is reported if it disconnects at the same position every time", async () => {
    const setting = await scene();
    setting.hub.failNext(STORED, { cutAfter: 1000, ignoreRange: true }, 100);
    const { store } = storeAt(setting.cacheDir, setting.hub);

    const error = await failureOf(pull(store));

    expect(error).toMatchObject({ code: "hub_answer_invalid" });
    expect(ranges(setting.hub).length).toBe(4);
  });

  it("gets a new retry budget after every received chunk", async () => {
    const setting = await scene();
    setting.hub.failNext(STORED, { cutAfter: 30_000 }, 8);
    const { store, waits } = storeAt(setting.cacheDir, setting.hub);

    const { files } = await pull(store);

    await expectComplete(setting, files);
    expect(new Set(waits)).toEqual(new Set([500]));
  });
});

describe("a file that differs from the hub's listing", () => {
  it("is deleted and never listed as a model", async () => {
    const setting = await scene();
    setting.hub.failNext(STORED, { corrupt: true });
    const { store } = storeAt(setting.cacheDir, setting.hub);

    const error = await failureOf(pull(store));

    expect(error).toMatchObject({ code: "checksum_mismatch", type: "model_error", retryable: true });
    expect(await readdir(setting.blobs)).toEqual([]);
    expect(await store.list()).toEqual([]);
  });

  it("is detected if it is in git instead of large file storage", async () => {
    const bytes = content(2000);
    const files = { [FILE]: { content: bytes, lfs: false } };
    const hub = await fixtureHub({ repos: { [REPO]: { files } } });
    hub.failNext(/^hub GET .*\/resolve\//, { corrupt: true });
    const { store } = storeAt(await temporaryFolder(), hub);

    expect(await failureOf(pull(store))).toMatchObject({ code: "checksum_mismatch" });
    expect(sha256(await readFile((await pull(store)).files[0]!))).toBe(sha256(bytes));
  });
});
