import { describe, expect, test } from "vitest";
import { BodyMemory } from "../../../src/http/app-env.ts";
import { fakeApp } from "../../support/fake-services.ts";

const LIMIT = 1024;

function post(body: BodyInit | undefined, headers: Record<string, string> = {}, path = "/api/models/load") {
  const app = fakeApp({ config: { http: { body_limit: LIMIT } } });
  return app.request(path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    ...(body !== undefined && { body, duplex: "half" }),
  });
}

async function error(
  response: Response,
): Promise<{ status: number; code: string; type: string; message: string }> {
  const body: { error: { code: string; type: string; message: string } } = await response.json();
  return { status: response.status, ...body.error };
}

describe("invalid bodies are 400 invalid_request", () => {
  test.each([
    ["invalid JSON", "{alias: 1}"],
    ["truncated JSON", '{"alias": "mi'],
    ["an empty body", ""],
    ["bytes that are not UTF-8", new Uint8Array([0x22, 0xff, 0xfe, 0x22])],
    ["deep nesting", "[".repeat(500) + "]".repeat(400)],
  ])("refuses %s", async (_kind, body) => {
    expect(await error(await post(body))).toMatchObject({
      status: 400,
      code: "invalid_json",
      type: "invalid_request",
    });
  });

  test.each([
    ["a missing field", "{}", /^alias: is missing$/],
    ["a wrong type", '{"alias": 5}', /^alias: /],
    ["a number out of range", '{"alias": "fake", "context_size": -5}', /^context_size: /],
    ["a fraction for an integer", '{"alias": "fake", "context_size": 100.5}', /^context_size: /],
    ["2^53 and more", '{"alias": "fake", "context_size": 1e400}', /^context_size: /],
    ["null", "null", /^The request must be an object, got null\.$/],
    ["an array", "[]", /^The request must be an object, got an empty array\.$/],
  ])("%s is reported with the path of the field", async (_kind, body, message) => {
    const answer = await error(await post(body));
    expect(answer).toMatchObject({ status: 400, code: "invalid_parameter" });
    expect(answer.message).toMatch(message);
  });

  test("__proto__ and unknown fields are ignored", async () => {
    const response = await post('{"alias": "none", "__proto__": {"polluted": true}, "unknown": 1}');
    expect(await error(response)).toMatchObject({ status: 404, code: "model_not_found" });
    expect({}).not.toHaveProperty("polluted");
  });
});

describe("the body limit", () => {
  const large = JSON.stringify({ alias: "x".repeat(LIMIT) });

  test("413 for a declared length, also on routes without a body", async () => {
    const declared = { "content-length": String(LIMIT + 1) };
    expect(await error(await post(large, declared))).toMatchObject({
      status: 413,
      code: "payload_too_large",
    });
    const unread = await post("x".repeat(10), declared, "/api/models/fake/unload");
    expect(unread.status).toBe(413);
  });

  test("413 for a chunked body without reading all of it", async () => {
    let sent = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += 1;
        controller.enqueue(new Uint8Array(256).fill(0x20));
      },
    });
    expect(await error(await post(endless))).toMatchObject({ status: 413, code: "payload_too_large" });
    expect(sent).toBeLessThan(20);
  });

  test("a body of exactly the limit passes", async () => {
    const exact = JSON.stringify({ alias: "fake" }).padEnd(LIMIT);
    expect(await error(await post(exact))).toMatchObject({ status: 409 });
  });
});

describe("the content encoding", () => {
  const body = '{"alias": "none"}';

  test.each(["identity", "Identity", ""])("%j is accepted", async (encoding) => {
    expect((await post(body, { "content-encoding": encoding })).status).toBe(404);
  });

  test.each(["gzip", "br", "gzip, identity"])(
    "%s is 415 with the encoding in the message",
    async (encoding) => {
      const response = await error(await post(body, { "content-encoding": encoding }));
      expect(response).toMatchObject({ status: 415, code: "unsupported_media_type" });
      expect(response.message).toContain(`Content-Encoding: ${encoding}`);
    },
  );
});

describe("the content type", () => {
  const body = '{"alias": "none"}';
  const page = { origin: "https://page.test" };

  test.each([
    "application/json",
    "application/json; charset=utf-8",
    "APPLICATION/JSON",
    "application/vnd.api+json",
  ])("%s is accepted as JSON", async (type) => {
    expect((await post(body, { "content-type": type, ...page })).status).toBe(404);
  });

  test("curl -d works without a header", async () => {
    expect((await post(body, { "content-type": "application/x-www-form-urlencoded" })).status).toBe(404);
    expect((await post(new Blob([body]), { "content-type": "" })).status).toBe(404);
  });

  test.each([
    ["text/plain", page],
    ["application/x-www-form-urlencoded", page],
    ["multipart/form-data; boundary=x", page],
    ["", page],
    ["text/plain; application/json", page],
    ["application/x-www-form-urlencoded", { "sec-fetch-site": "cross-site" }],
    ["text/plain", {}],
    ["application/xml", {}],
  ])("%j with %j is 415, since a page could send it without a preflight", async (type, headers) => {
    const response = await post(body, { "content-type": type, ...headers });
    expect(await error(response)).toMatchObject({ status: 415, code: "unsupported_media_type" });
  });
});

function nested(levels: number): string {
  return `{"alias":"none","x":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`;
}

describe("the JSON of a body", () => {
  test("may be nested 100 levels deep but not 101", async () => {
    expect((await post(nested(100))).status).toBe(404);
    expect(await error(await post(nested(101)))).toMatchObject({
      status: 400,
      code: "invalid_json",
      message: "The request body may be nested 100 levels deep at most.",
    });
  });

  test("may contain many brackets in strings", async () => {
    expect((await post(JSON.stringify({ alias: "none", x: `\\"${"[".repeat(300)}` }))).status).toBe(404);
  });
});

describe("BodyMemory", () => {
  test("limits all bodies together, and frees memory when a request ends", () => {
    const bodies = new BodyMemory(1_000_000);
    const running = Array.from({ length: 4 }, () => bodies.begin());
    for (const body of running) body.add(1_000_000);
    const ordinary = bodies.begin();
    ordinary.add(64 * 1024);
    const large = bodies.begin();
    expect(() => large.add(1_000_000)).toThrow(expect.objectContaining({ code: "overloaded" }));
    large.release();
    large.release();
    running[0]!.release();
    expect(() => bodies.begin().add(1_000_000)).not.toThrow();
  });

  test("allows exactly the limit", () => {
    const bodies = new BodyMemory(1000);
    const body = bodies.begin();
    // The beginning of each body is not counted.
    body.add(64 * 1024 + 4000);
    expect(() => body.add(1)).toThrow(expect.objectContaining({ code: "overloaded" }));
  });
});
