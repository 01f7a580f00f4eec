import { once } from "node:events";
import { readFile } from "node:fs/promises";
import https from "node:https";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { ServiceError } from "../../../../src/errors/service-error.ts";
import type { PullProgress } from "../../../../src/models/hub/hub-types.ts";
import type { FixtureHub } from "../../../support/fixture-hub.ts";
import type { Fault } from "../../../support/fixture-hub-body.ts";
import { sha256 } from "../../../support/fixture-hub-content.ts";
import { SELF_SIGNED } from "../../../support/self-signed-certificate.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { content, failureOf, fixtureHub, pull, REPO, SPEC, storeAt } from "./hub-test.ts";

const FILE = "tiny-Q4_K_M.gguf";
const ALWAYS = 10_000;
const REVISION = /^hub GET \/api\/.*\/revision\//;
const TREE = /^hub GET \/api\/.*\/tree\//;
const RESOLVE = /^hub GET \/.*\/resolve\//;
const STORED = /^storage GET \/stored\//;
/** Failures that no retry can repair. */
const A_SECOND_MS = 1000;

const total = (waits: readonly number[]): number => waits.reduce((sum, wait) => sum + wait, 0);

async function scene() {
  const bytes = content(100_000);
  const hub = await fixtureHub({ repos: { [REPO]: { files: { [FILE]: bytes } } } });
  return { bytes, hub, cacheDir: await temporaryFolder() };
}

/** Expects a failure that is reported after less than a second of waits. */
async function quickFailure(hub: FixtureHub, spec = SPEC): Promise<ServiceError> {
  const { store, waits } = storeAt(await temporaryFolder(), hub);
  const error = await failureOf(pull(store, { spec }));
  expect(total(waits)).toBeLessThanOrEqual(A_SECOND_MS);
  expect(await store.list()).toEqual([]);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every test checks its code
  return error as ServiceError;
}

/** An endless list of files. */
function* endlessListing(sent: { bytes: number }): Generator<Uint8Array> {
  const entries = Buffer.from('{"type":"file","path":"x.gguf","size":1},'.repeat(1000));
  yield Buffer.from("[");
  for (;;) {
    sent.bytes += entries.length;
    yield entries;
  }
}

const entry = (path: string) => ({ type: "file", path, size: 1, oid: "a".repeat(40) });

describe("a hub answer that makes success impossible", () => {
  it.each<[string, RegExp, Fault]>([
    ["a web page", REVISION, { body: "<!doctype html><title>Sign in to this network</title>" }],
    ["nothing", REVISION, { status: 200 }],
    ["another kind of JSON", REVISION, { body: "[1, 2, 3]" }],
    ["a commit that is none", REVISION, { body: '{"sha": "main"}' }],
    ["truncated JSON", REVISION, { body: '{"sha": "aaaaaaaaaa' }],
    ["JSON nested without end", TREE, { body: "[".repeat(1_000_000) }],
    ["a listing that is none", TREE, { body: '{"error": "no"}' }],
    ["a listing of too many values", TREE, { body: `[${"[],".repeat(500_000)}1]` }],
    ["a listing of something else", TREE, { body: '[{"type": "file"}, null, 3]' }],
    ["a truncated listing", TREE, { body: '[{"type": "file", "path": "x' }],
    [
      "a listing of too many files",
      TREE,
      { body: JSON.stringify(Array.from({ length: 20_001 }, () => entry("x"))) },
    ],
    ["a redirect to itself", REVISION, { redirect: "?" }],
    ["a redirect to what is not an address", REVISION, { redirect: "http://[" }],
    ["a status that no hub has", REVISION, { status: 418 }],
    ["that it cannot do that", TREE, { status: 501 }],
    ["a file by a redirect to itself", RESOLVE, { redirect: "?" }],
    ["a file of another size", STORED, { body: "short", headers: { "content-length": "5" } }],
    ["more bytes than the file has", STORED, { body: "x".repeat(100_001) }],
    ["less than the file has, in good order", STORED, { body: "x", headers: { etag: '"one"' } }],
    [
      "another hash than it has listed",
      RESOLVE,
      {
        status: 200,
        headers: { "x-linked-etag": `"${sha256("another")}"` },
      },
    ],
  ])("is reported within a second with advice: %s", async (_what, request, fault) => {
    const { hub } = await scene();
    hub.failNext(request, fault, ALWAYS);

    const error = await quickFailure(hub);

    expect(error).toMatchObject({ code: "hub_answer_invalid", status: 502, retryable: false });
    expect(error.message).toMatch(
      new RegExp(`^The answer of the hub at ${hub.url} for ${REPO} cannot be used: `),
    );
    expect(error.message).toContain("HUB_URL");
  });

  it("is reported within a second if its redirects never end", async () => {
    const { hub } = await scene();
    for (let hop = 0; hop < 50; hop++) hub.failNext(REVISION, { redirect: `?hop=${hop}` });

    expect(await quickFailure(hub)).toMatchObject({ code: "hub_answer_invalid" });
    expect(hub.requests).toHaveLength(11);
  });

  it("is reported within a second if a listing has no last page", async () => {
    const { hub } = await scene();
    for (let page = 0; page < 1000; page++)
      hub.failNext(TREE, {
        body: "[]",
        headers: { link: `<${hub.url}/api/models/${REPO}/tree/x?page=${page}>; rel="next"` },
      });

    expect(await quickFailure(hub)).toMatchObject({ code: "hub_answer_invalid" });
    expect(hub.requests.length).toBeLessThan(250);
  });

  it("is reported without reading hundreds of megabytes of a listing", async () => {
    const { hub } = await scene();
    const sent = { bytes: 0 };
    hub.failNext(TREE, { body: endlessListing(sent) }, ALWAYS);

    expect(await quickFailure(hub)).toMatchObject({ code: "hub_answer_invalid" });
    expect(sent.bytes).toBeLessThan(20_000_000);
  });

  it.each([400, 404, 410, 422])("is reported as a missing revision: %i", async (status) => {
    const { hub } = await scene();
    hub.failNext(REVISION, {
      status,
      body: JSON.stringify({ error: `Bad revision\u001b[2J ${"x".repeat(5000)}` }),
    });

    const error = await quickFailure(hub, { ...SPEC, revision: "v9" });

    expect(error).toMatchObject({ code: "hub_repo_not_found", status: 404 });
    expect(error.message.length).toBeLessThan(600);
  });

  it("is reported within a second if the ETag differs with every request", async () => {
    const { hub } = await scene();
    for (let part = 0; part < 50; part++)
      hub.failNext(STORED, { headers: { etag: `"${part}"` }, cutAfter: 30_000 });
    const { store, waits } = storeAt(await temporaryFolder(), hub);

    const error = await failureOf(pull(store));

    expect(error).toMatchObject({ code: "hub_answer_invalid", message: expect.stringContaining("ETag") });
    // Two disconnections, which may be the network's fault, and a third.
    expect(waits).toEqual([500, 500, 1000]);
  });
});

describe("a connection that can only fail", () => {
  it("is reported immediately if the hub's certificate is not trusted", async () => {
    const server = https.createServer(SELF_SIGNED, (_request, response) => void response.end("{}"));
    const { hub, cacheDir } = await scene();
    server.listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await once(server, "listening");
    const address = server.address();
    const hubUrl = `https://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
    const { store, waits } = storeAt(cacheDir, hub, { hubUrl });

    const error = await failureOf(pull(store));

    expect(error).toMatchObject({ code: "hub_unreachable" });
    for (const message of [hubUrl, "certificate", "NODE_EXTRA_CA_CERTS"])
      expect(String(error)).toContain(message);
    expect(waits).toEqual([]);
  });

  it("is reported immediately if the hub speaks no TLS", async () => {
    const { hub, cacheDir } = await scene();
    const { store, waits } = storeAt(cacheDir, hub, { hubUrl: hub.url.replace("http:", "https:") });

    expect(await failureOf(pull(store))).toMatchObject({ code: "hub_unreachable" });
    expect(waits).toEqual([]);
  });
});

describe("a hub with a temporary failure", () => {
  it.each<[string, RegExp, Fault]>([
    ["truncated JSON", REVISION, { body: '{"sha": "aaaaaaaaaa' }],
    ["a truncated listing", TREE, { body: '[{"type": "file", "path": "x' }],
    ["a file of another size", STORED, { body: "short", headers: { "content-length": "5" } }],
    ["more bytes than the file has", STORED, { body: "x".repeat(100_001) }],
    ["an error whose body never ends", TREE, { status: 503, body: neverEnding() }],
  ])("is requested again after %s", async (_what, request, fault) => {
    const { hub, cacheDir, bytes } = await scene();
    hub.failNext(request, fault);
    const { store, waits } = storeAt(cacheDir, hub);

    const { files } = await pull(store);

    expect(sha256(await readFile(files[0]!))).toBe(sha256(bytes));
    expect(waits).toEqual([500]);
  });

  it("is not waited for if it sends a file extremely slowly", async () => {
    const { hub, cacheDir } = await scene();
    const { promise: never, resolve } = Promise.withResolvers<void>();
    onTestFinished(() => resolve());
    hub.failNext(STORED, { pause: { after: 1, until: never } }, ALWAYS);
    // The stall timeout expires after a single byte has arrived.
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
    onTestFinished(() => void vi.useRealTimers());
    const stallTimeoutMs = 60_000;
    const { store, waits } = storeAt(cacheDir, hub, { stallTimeoutMs });
    const onProgress = (progress: PullProgress): void => {
      if (progress.status === "downloading" && progress.downloadedBytes > 0)
        vi.advanceTimersByTime(stallTimeoutMs);
    };

    const error = await failureOf(pull(store, { onProgress }));

    expect(error).toMatchObject({
      code: "hub_unreachable",
      message: expect.stringContaining("only 1 bytes arrived in 60 s"),
    });
    expect(waits).toEqual([500, 1000, 2500, 5000, 10_000]);
  });
});

async function* neverEnding(): AsyncGenerator<Uint8Array> {
  yield Buffer.from('{"error": "');
  await new Promise(() => {});
}
