import { mkdtemp, open, readdir, rm, type FileHandle } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it, vi } from "vitest";
import type { PullProgress } from "../../../../src/models/hub/hub-types.ts";
import { startFixtureHub } from "../../../support/fixture-hub.ts";
import { content, failureOf, fixtureHub, pull, REPO, SPEC, storeAt, untilBytes } from "./hub-test.ts";
import { temporaryFolder } from "../temporary-folder.ts";

const FILES = { "tiny-Q4_K_M.gguf": content(5000) };

describe("errors of a pull", () => {
  it.each([
    ["without a token", undefined],
    ["with a token", "hf_somebody"],
  ])("report that there is no such repository, %s", async (_how, token) => {
    const hub = await fixtureHub({});
    const { store } = storeAt(await temporaryFolder(), hub, { token });

    const error = await failureOf(pull(store));

    expect(error).toMatchObject({ code: "hub_repo_not_found", status: 404, type: "not_found" });
    expect(String(error)).toContain(REPO);
  });

  it("do not reveal if a repository is private or missing", async () => {
    const hub = await fixtureHub({ repos: { [REPO]: { files: FILES, privateTo: ["hf_ada"] } } });
    const cacheDir = await temporaryFolder();

    expect(await failureOf(pull(storeAt(cacheDir, hub).store))).toMatchObject({ code: "hub_repo_not_found" });
    expect(await pull(storeAt(cacheDir, hub, { token: "hf_ada" }).store)).toMatchObject({ repo: REPO });
  });

  it("report that there is no such revision", async () => {
    const hub = await fixtureHub({ repos: { [REPO]: { files: FILES } } });
    const { store } = storeAt(await temporaryFolder(), hub);

    const error = await failureOf(pull(store, { spec: { ...SPEC, revision: "v9" } }));

    expect(error).toMatchObject({ code: "hub_repo_not_found" });
    expect(String(error)).toContain("v9");
  });

  it("report that the repository lacks the named file or projector", async () => {
    const hub = await fixtureHub({ repos: { [REPO]: { files: FILES } } });
    const { store } = storeAt(await temporaryFolder(), hub);

    const file = await failureOf(pull(store, { spec: { ...SPEC, file: "other.gguf" } }));
    const projector = await failureOf(pull(store, { projector: "mmproj.gguf" }));

    expect(file).toMatchObject({ code: "hub_repo_not_found" });
    expect(String(file)).toContain("other.gguf");
    expect(projector).toMatchObject({ code: "hub_repo_not_found" });
    expect(String(projector)).toContain("mmproj.gguf");
  });

  it("explain how to get access to a gated repository", async () => {
    const hub = await fixtureHub({ repos: { [REPO]: { files: FILES, gatedTo: ["hf_friend"] } } });
    const cacheDir = await temporaryFolder();

    const stranger = await failureOf(pull(storeAt(cacheDir, hub).store));
    const refused = await failureOf(pull(storeAt(cacheDir, hub, { token: "hf_other" }).store));

    expect(stranger).toMatchObject({ code: "hub_access_denied", status: 403 });
    expect(String(stranger)).toContain(`${hub.url}/${REPO}`);
    expect(String(stranger)).toContain("HUB_TOKEN");
    expect(refused).toMatchObject({ code: "hub_access_denied" });
    expect(String(refused)).toContain("no access yet");
    expect(await pull(storeAt(cacheDir, hub, { token: "hf_friend" }).store)).toMatchObject({ repo: REPO });
  });

  it("report that the hub rejects the token", async () => {
    const hub = await fixtureHub({ repos: { [REPO]: { files: FILES } } });
    hub.failNext(/^hub GET /, {
      status: 401,
      headers: { "x-error-message": "Invalid credentials in Authorization header" },
    });
    const { store } = storeAt(await temporaryFolder(), hub, { token: "hf_old" });

    expect(await failureOf(pull(store))).toMatchObject({ code: "hub_access_denied" });
  });

  it("never contain the token", async () => {
    const hub = await fixtureHub({ repos: { [REPO]: { files: FILES, gatedTo: ["hf_friend"] } } });
    const { store } = storeAt(await temporaryFolder(), hub, { token: "hf_secret" });

    expect(JSON.stringify(await failureOf(pull(store)), everything)).not.toContain("hf_secret");
  });

  it.each(["hf_one\nhf_two", "hf_\u00e9\u4e2d", "hf_one hf_two"])(
    "report a malformed token without quoting it: %j",
    async (token) => {
      const hub = await fixtureHub({ repos: { [REPO]: { files: FILES } } });
      const { store, waits } = storeAt(await temporaryFolder(), hub, { token });

      const error = await failureOf(pull(store));

      expect(error).toMatchObject({ code: "hub_access_denied" });
      expect(JSON.stringify(error, everything)).not.toContain("hf_");
      expect(hub.requests).toEqual([]);
      expect(waits).toEqual([]);
    },
  );

  it("report that there is no GGUF file, or none of the quantization", async () => {
    const repos = { [REPO]: { files: FILES }, "ada/plain": { files: { "model.safetensors": "x" } } };
    const hub = await fixtureHub({ repos });
    const { store } = storeAt(await temporaryFolder(), hub);

    const none = await failureOf(pull(store, { spec: { owner: "ada", repo: "plain" } }));
    const quant = await failureOf(pull(store, { spec: { ...SPEC, quant: "Q8_0" } }));

    expect(none).toMatchObject({ code: "no_gguf_in_repo", status: 404 });
    expect(quant).toMatchObject({ code: "no_gguf_in_repo" });
    expect(String(quant)).toContain("Q8_0");
  });

  it.each([
    ["nobody listens at its address", undefined, "ECONNREFUSED", [500]],
    ["its name is unknown", "http://hub.invalid", "hub.invalid", [500]],
    ["its port is one that fetch() blocks", "http://127.0.0.1:6000", "bad port", []],
  ])("are reported within a second with advice if %s", async (_what, hubUrl, reason, expectedWaits) => {
    const unreachableHub = await startFixtureHub();
    await unreachableHub.close();
    const { store, waits } = storeAt(
      await temporaryFolder(),
      unreachableHub,
      hubUrl === undefined ? {} : { hubUrl },
    );
    const seen: PullProgress[] = [];

    const error = await failureOf(pull(store, { onProgress: (progress) => seen.push(progress) }));

    expect(error).toMatchObject({ code: "hub_unreachable", status: 503, retryable: true });
    for (const messages of [
      reason,
      hubUrl ?? unreachableHub.url,
      "HUB_URL",
      "HTTPS_PROXY",
      "work without the hub",
    ])
      expect(String(error)).toContain(messages);
    expect(waits).toEqual(expectedWaits);
    expect(seen).toEqual(
      expectedWaits.map((waitMs) => ({
        status: "retrying",
        reason: expect.stringContaining(reason),
        waitMs,
      })),
    );
  });

  it("come after more retries if the hub answers, and every retry is reported", async () => {
    const hub = await fixtureHub({ repos: { [REPO]: { files: FILES } } });
    hub.failNext(/^hub GET /, { status: 502 }, 100);
    const { store, waits } = storeAt(await temporaryFolder(), hub);
    const seen: PullProgress[] = [];

    const error = await failureOf(pull(store, { onProgress: (progress) => seen.push(progress) }));

    expect(error).toMatchObject({ code: "hub_unreachable" });
    expect(waits).toEqual([500, 1000, 2500, 5000, 10_000]);
    expect(seen).toHaveLength(5);
    expect(seen.at(-1)).toMatchObject({ status: "retrying", reason: expect.stringContaining("502") });
  });

  it("are reported as retries to all callers if they occur in the middle of a file", async () => {
    const hub = await fixtureHub({ repos: { [REPO]: { files: FILES } } });
    const bothWait = Promise.withResolvers<void>();
    hub.failNext(/^storage GET /, { pause: { after: 2500, until: bothWait.promise }, cutAfter: 2500 });
    const { store } = storeAt(await temporaryFolder(), hub);
    const seen: PullProgress[] = [];
    const waiters = [untilBytes(1), untilBytes(1)];
    const pulls = waiters.map((waiter) =>
      pull(store, {
        onProgress: (progress) => {
          seen.push(progress);
          waiter.onProgress(progress);
        },
      }),
    );
    await Promise.all(waiters.map(({ reached }) => reached));
    bothWait.resolve();

    await Promise.all(pulls);

    const retries = seen.filter(({ status }) => status === "retrying");
    expect(retries).toEqual([
      expect.objectContaining({ waitMs: 500 }),
      expect.objectContaining({ waitMs: 500 }),
    ]);
  });

  it("report insufficient disk space before the download starts", async () => {
    const hub = await fixtureHub({ repos: { [REPO]: { files: FILES } } });
    const cacheDir = await temporaryFolder();
    const { store } = storeAt(cacheDir, hub, { freeSpace: () => Promise.resolve(4999) });

    const error = await failureOf(pull(store));

    expect(error).toMatchObject({ code: "insufficient_disk", retryable: false });
    expect(hub.downloads).toEqual([]);
    expect(await readdir(cacheDir)).toEqual([]);
  });

  it("count only the missing bytes against the free disk space", async () => {
    const hub = await fixtureHub({ repos: { [REPO]: { files: FILES } } });
    const cacheDir = await temporaryFolder();
    await pull(storeAt(cacheDir, hub).store);
    const { store } = storeAt(cacheDir, hub, { freeSpace: () => Promise.resolve(0) });

    expect(await pull(store)).toMatchObject({ repo: REPO });

    // Only the blob, as after a pull that ended before the file was in its snapshot.
    await rm(path.join(cacheDir, "models--ada--tiny-GGUF", "snapshots"), { recursive: true });
    expect(await pull(store)).toMatchObject({ repo: REPO });
  });

  it("report that the disk has filled up, and keep the partial file", async () => {
    const hub = await fixtureHub({ repos: { [REPO]: { files: FILES } } });
    const cacheDir = await temporaryFolder();
    const { store } = storeAt(cacheDir, hub);
    const full = Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
    const write = vi.spyOn(await fileHandlePrototype(), "write").mockRejectedValueOnce(full);

    const error = await failureOf(pull(store));

    expect(write).toHaveBeenCalled();
    expect(error).toMatchObject({ code: "insufficient_disk" });
    const blobs = await readdir(path.join(cacheDir, "models--ada--tiny-GGUF", "blobs"));
    expect(blobs).toEqual([expect.stringMatching(/\.incomplete$/)]);
    expect(await pull(store)).toMatchObject({ repo: REPO });
  });

  it("are always ServiceErrors, even if the cache folder cannot be written", async () => {
    const hub = await fixtureHub({ repos: { [REPO]: { files: FILES } } });
    const folder = await mkdtemp(path.join(await temporaryFolder(), "x"));
    const file = path.join(folder, "file");
    await (await open(file, "w")).close();
    const { store } = storeAt(file, hub);

    const error = await failureOf(pull(store));

    expect(error).toMatchObject({ name: "ServiceError", code: "internal_error" });
    expect(String(error)).toContain(file);
  });

  it.each([
    { owner: "..", repo: "x" },
    { owner: "a", repo: "../../b" },
    { owner: "a/b", repo: "c" },
    { owner: "a--b", repo: "c" },
    { owner: "a", repo: "b", revision: "../../x" },
    { owner: "a", repo: "b", revision: "x\0" },
  ])("reject an unchecked spec: %j", async (spec) => {
    const hub = await fixtureHub({});
    const { store } = storeAt(await temporaryFolder(), hub);

    expect(await failureOf(pull(store, { spec }))).toMatchObject({ code: "invalid_model_name" });
    expect(await failureOf(store.find(spec))).toMatchObject({ code: "invalid_model_name" });
    expect(hub.requests).toEqual([]);
  });
});

/** Prototype of all file handles. */
async function fileHandlePrototype(): Promise<FileHandle> {
  const handle = await open(import.meta.filename);
  await handle.close();
  const prototype: FileHandle = Object.getPrototypeOf(handle);
  return prototype;
}

/** Returns the properties of errors that JSON omits. */
function everything(_key: string, value: unknown): unknown {
  if (!(value instanceof Error)) return value;
  const { message, stack, cause } = value;
  return { ...Object.fromEntries(Object.entries(value)), message, stack, cause };
}
