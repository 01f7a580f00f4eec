import { describe, expect, it } from "vitest";
import { HubFetch } from "../../../../../src/models/hub/remote/hub-fetch.ts";
import { content, failureOf, fixtureHub, pull, REPO, storeAt } from "../hub-test.ts";
import { temporaryFolder } from "../../temporary-folder.ts";

const TOKEN = "a-token-of-a-private-hub";
const FILES = { "tiny-Q4_K_M.gguf": content(5000) };

describe("the hub token", () => {
  it("is sent to the hub with every request, and to no redirect target", async () => {
    const hub = await fixtureHub({ repos: { [REPO]: { files: FILES } } });
    const { store } = storeAt(await temporaryFolder(), hub, { token: TOKEN });

    await pull(store);

    const atHub = hub.requests.filter((seen) => seen.server === "hub");
    const atStorage = hub.requests.filter((seen) => seen.server === "storage");
    expect(atHub.length).toBeGreaterThanOrEqual(3);
    expect(atHub.map((seen) => seen.headers.authorization)).toEqual(atHub.map(() => `Bearer ${TOKEN}`));
    expect(atStorage).toHaveLength(1);
    expect(JSON.stringify(atStorage)).not.toContain(TOKEN);
  });

  it("is not sent to another host of a listing's next page, which is requested from the hub", async () => {
    const hub = await fixtureHub({ repos: { [REPO]: { files: FILES } } });
    hub.failNext(/\/tree\//, {
      headers: { link: `<${hub.storageUrl}/api/models/${REPO}/tree/main?cursor=1>; rel="next"` },
    });
    const { store } = storeAt(await temporaryFolder(), hub, { token: TOKEN });

    await pull(store);

    expect(hub.requests.filter((seen) => seen.path.includes("cursor=1"))).toMatchObject([{ server: "hub" }]);
  });

  it("is not sent to another host if the API redirects", async () => {
    const hub = await fixtureHub({ repos: { [REPO]: { files: FILES } } });
    hub.failNext(/\/revision\//, { redirect: `${hub.storageUrl}/stolen` }, 100);
    const { store } = storeAt(await temporaryFolder(), hub, { token: TOKEN });

    expect(await failureOf(pull(store))).toMatchObject({ code: "hub_unreachable" });
    const foreign = hub.requests.filter((seen) => seen.server === "storage");
    expect(foreign.length).toBeGreaterThan(0);
    expect(JSON.stringify(foreign)).not.toContain(TOKEN);
  });

  it("is not sent to chunk storage", async () => {
    const files = { "tiny-Q4_K_M.gguf": { content: content(5000), xet: true } };
    const hub = await fixtureHub({ repos: { [REPO]: { files, gatedTo: [TOKEN] } } });
    const { store } = storeAt(await temporaryFolder(), hub, { token: TOKEN });

    await pull(store);

    const atStorage = hub.requests.filter((seen) => seen.server === "storage");
    expect(atStorage.map((seen) => seen.path)).toContainEqual(expect.stringContaining("/xorbs/"));
    expect(JSON.stringify(atStorage)).not.toContain(TOKEN);
  });
});

/** Creates a fetch function that answers from a table and stores its requests. */
function table(answers: Readonly<Record<string, string>>) {
  const sent: { url: string; authorization: string | null; cookie: string | null }[] = [];
  const fetch: typeof globalThis.fetch = (input, init) => {
    const { url } = new Request(input);
    const headers = new Headers(init?.headers);
    sent.push({ url, authorization: headers.get("authorization"), cookie: headers.get("cookie") });
    const location = answers[url];
    const answer =
      location === undefined
        ? new Response("ok")
        : new Response(null, { status: 302, headers: { location } });
    return Promise.resolve(answer);
  };
  return { fetch, sent };
}

describe("a redirect", () => {
  const hubUrl = "https://hub.example";
  const start = "https://hub.example/start";

  it.each([
    "https://hub.example.evil.example/",
    "https://evil.example/hub.example",
    "https://hub.example:8443/",
    "//evil.example/",
  ])("to %s gets no token", async (target) => {
    const { fetch, sent } = table({ [start]: target });
    const hub = new HubFetch({ hubUrl, token: TOKEN, fetch });

    await hub.request(start);

    expect(sent.map((request) => request.authorization)).toEqual([`Bearer ${TOKEN}`, null]);
  });

  it("within the hub keeps the token, and one back to the hub sends it again", async () => {
    const { fetch, sent } = table({
      [start]: "/moved",
      "https://hub.example/moved": "https://cdn.example/",
      "https://cdn.example/": "https://hub.example/end",
    });
    const hub = new HubFetch({ hubUrl, token: TOKEN, fetch });

    await hub.request(start);

    const bearer = `Bearer ${TOKEN}`;
    expect(sent.map((request) => request.authorization)).toEqual([bearer, bearer, null, bearer]);
  });

  it("sends no other credentials to another origin", async () => {
    const { fetch, sent } = table({ "https://chunks.example/": "https://evil.example/" });
    const hub = new HubFetch({ hubUrl, token: TOKEN, fetch });

    await hub.request("https://chunks.example/", {
      headers: { authorization: "Bearer chunks", cookie: "a=b" },
    });

    expect(sent).toEqual([
      { url: "https://chunks.example/", authorization: "Bearer chunks", cookie: "a=b" },
      { url: "https://evil.example/", authorization: null, cookie: null },
    ]);
  });

  it.each([
    "http://hub.example/",
    "http://169.254.169.254/latest",
    "file:///etc/passwd",
    "data:text/plain,x",
  ])("from HTTPS to %s is rejected", async (target) => {
    const { fetch, sent } = table({ [start]: target });
    const hub = new HubFetch({ hubUrl, token: TOKEN, fetch });

    expect(await failureOf(hub.request(start))).toMatchObject({ name: "HubAnswerFailure" });
    expect(sent).toHaveLength(1);
  });

  it("that never ends is given up", async () => {
    const { fetch, sent } = table({ [start]: start });
    const hub = new HubFetch({ hubUrl, token: TOKEN, fetch });

    expect(await failureOf(hub.request(start))).toMatchObject({
      message: expect.stringContaining("redirects"),
    });
    expect(sent.length).toBeLessThan(20);
  });
});
