import { describe, expect, test } from "vitest";
import { z } from "zod";
import { ServiceError } from "../../../src/errors/service-error.ts";
import { createApp } from "../../../src/http/app.ts";
import { defineRoute, type Api } from "../../../src/http/route.ts";
import { managementApi } from "../../../src/api/management/management-api.ts";
import { ndjsonLine } from "../../../src/http/errors.ts";
import { streamResponse, type StreamFormat } from "../../../src/http/streaming/stream-response.ts";
import { fakeServices } from "../../support/fake-services.ts";

const format: StreamFormat = {
  contentType: "application/x-ndjson",
  errorFrame: (error, requestId) => ndjsonLine({ failed: error.code, requestId }),
  heartbeat: "\n",
  heartbeatMs: 5,
};

/** API under /other with a different error format. */
function otherApi(frames: () => AsyncIterable<string>): Api {
  const route = { tag: "Other", summary: "A route", answers: [{ description: "An answer." }] };
  return {
    name: "Other",
    prefixes: ["/other", "/other/deep"],
    routes: [
      defineRoute({
        ...route,
        method: "POST",
        path: "/other/echo",
        body: z.object({ items: z.array(z.union([z.string(), z.object({ text: z.string() })])) }),
        handle: (context, { body }) => context.json(body),
      }),
      defineRoute({
        ...route,
        method: "GET",
        path: "/other/broken",
        handle: () => {
          throw new TypeError("the database password is hunter2");
        },
      }),
      defineRoute({
        ...route,
        method: "GET",
        path: "/other/abandoned",
        handle: (context) => {
          throw context.req.raw.signal.reason;
        },
      }),
      defineRoute({
        ...route,
        method: "GET",
        path: "/other/conflict",
        handle: () => {
          throw new ServiceError("overloaded", "Later.", { retryAfterSecs: 1.2 });
        },
      }),
      defineRoute({
        ...route,
        method: "GET",
        path: "/other/stream",
        handle: (context) => streamResponse(context, frames(), format),
      }),
    ],
    renderError: (error, requestId) => ({
      status: error.status,
      body: { oops: error.code, text: error.message, requestId },
      headers: { "x-other": "1" },
    }),
    errorSchema: z.object({ oops: z.string() }),
  };
}

async function* noFrames(): AsyncGenerator<string, void, undefined> {}

function app(frames: () => AsyncIterable<string> = noFrames, log?: (line: string) => void) {
  const services = fakeServices(log ? { log } : {});
  const apis: readonly Api[] = [managementApi(services, () => apis), otherApi(frames)];
  return createApp(services, apis);
}

describe("errors have the format of their API", () => {
  test.each([
    ["GET", "/nowhere", 404, "route_not_found"],
    ["GET", "/api/nowhere", 404, "route_not_found"],
    ["GET", "/others", 404, "route_not_found"],
    ["PUT", "/api/models/pull", 405, "method_not_allowed"],
  ])("%s %s is %d in the native format", async (method, path, status, code) => {
    const response = await app().request(path, { method });
    expect(response.status).toBe(status);
    expect(await response.json()).toEqual({
      error: { message: expect.any(String), type: expect.any(String), code },
    });
  });

  test.each([
    ["GET", "/other/nowhere", 404, "route_not_found"],
    ["GET", "/other", 404, "route_not_found"],
    ["DELETE", "/other/echo", 405, "method_not_allowed"],
    ["POST", "/other/echo", 400, "invalid_json"],
    ["GET", "/other/conflict", 503, "overloaded"],
  ])("%s %s is %d in the other API's format", async (method, path, status, code) => {
    const response = await app().request(path, { method, headers: { "x-request-id": "abc" } });
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ oops: code, requestId: "abc" });
    expect(response.headers.get("x-other")).toBe("1");
    expect(response.headers.get("content-type")).toBe("application/json");
  });

  test("405 lists the methods in Allow", async () => {
    const response = await app().request("/other/echo");
    expect(response.headers.get("allow")).toBe("OPTIONS, POST");
    const model = await app().request("/api/models/fake", { method: "PATCH" });
    expect(model.headers.get("allow")).toBe("DELETE, GET, HEAD, OPTIONS");
  });

  test("Retry-After is in whole seconds", async () => {
    expect((await app().request("/other/conflict")).headers.get("retry-after")).toBe("2");
  });

  test("an unexpected error is a 500 whose cause is only logged", async () => {
    const lines: string[] = [];
    const response = await app(noFrames, (line) => lines.push(line)).request("/other/broken");
    expect(response.status).toBe(500);
    const text = await response.text();
    expect(text).toContain("internal_error");
    expect(text).not.toContain("hunter2");
    expect(lines.join("")).toContain("hunter2");
  });

  test("a request of a disconnected client is logged without an error", async () => {
    const lines: string[] = [];
    // The server aborts requests with a string.
    const signal = AbortSignal.abort("Client connection prematurely closed.");
    await app(noFrames, (line) => lines.push(line)).request("/other/abandoned", { signal });
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({ path: "/other/abandoned", status: 499 });
    expect(JSON.parse(lines[0] ?? "")).not.toHaveProperty("error");
  });

  test("the log line of a request contains the error code of a failure", async () => {
    const lines: string[] = [];
    const logged = app(noFrames, (line) => lines.push(line));
    for (const path of ["/nowhere", "/other/conflict", "/health"]) await logged.request(path);
    const requests = lines
      .map((line): unknown => JSON.parse(line))
      .filter((line) => /"msg":"request"/.test(JSON.stringify(line)));
    expect(requests).toMatchObject([
      { error: "route_not_found" },
      { error: "overloaded" },
      { path: "/health" },
    ]);
    expect(requests[2]).not.toHaveProperty("error");
  });

  test("a union reports the error of the member that matches best", async () => {
    const response = await app().request("/other/echo", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"items": ["a", {"text": 5}]}',
    });
    expect(await response.json()).toMatchObject({
      text: "items.1.text: must be a string, got 5",
    });
    const neither = await app().request("/other/echo", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"items": [5]}',
    });
    expect(await neither.json()).toMatchObject({ text: "items.0: must be a string or an object, got 5" });
  });
});

describe("methods", () => {
  test("HEAD is GET without a body", async () => {
    const response = await app().request("/health", { method: "HEAD" });
    expect(response.status).toBe(200);
    expect(await response.text()).toBe("");
  });
});

describe("streams", () => {
  test("an error after the first frame becomes the last frame", async () => {
    const response = await app(async function* () {
      yield "one\n";
      throw new ServiceError("engine_crashed", "gone");
    }).request("/other/stream", { headers: { "x-request-id": "abc" } });
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('one\n{"failed":"engine_crashed","requestId":"abc"}\n');
  });

  test("an unexpected error becomes an internal_error and is logged", async () => {
    const lines: string[] = [];
    const response = await app(
      async function* () {
        yield "one\n";
        throw new TypeError("hunter2");
      },
      (line) => lines.push(line),
    ).request("/other/stream");
    const text = await response.text();
    expect(text).toContain('"failed":"internal_error"');
    expect(text).not.toContain("hunter2");
    expect(lines.join("")).toContain("hunter2");
  });

  test("heartbeats are sent during a pause, and no frame is lost", async () => {
    const gate = Promise.withResolvers<void>();
    const response = await app(async function* () {
      yield "one\n";
      await gate.promise;
      yield "two\n";
    }).request("/other/stream");
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    const seen: string[] = [];
    while (!seen.includes("\n")) seen.push((await reader.read()).value ?? "end");
    gate.resolve();
    for (let read = await reader.read(); !read.done; read = await reader.read()) seen.push(read.value);
    expect(seen.filter((frame) => frame !== "\n")).toEqual(["one\n", "two\n"]);
  });

  test("frames are generated at the reader's speed", async () => {
    let made = 0;
    const response = await app(async function* () {
      for (;;) {
        made += 1;
        yield "frame\n";
      }
    }).request("/other/stream");
    const reader = response.body!.getReader();
    for (let i = 0; i < 10; i += 1) await reader.read();
    expect(made).toBeLessThan(15);
    await reader.cancel();
  });

  test("a disconnect of the reader ends the generator", async () => {
    const ended = Promise.withResolvers<string>();
    const response = await app(async function* () {
      try {
        for (;;) yield "frame\n";
      } finally {
        ended.resolve("returned");
      }
    }).request("/other/stream");
    const reader = response.body!.getReader();
    await reader.read();
    await reader.cancel();
    expect(await ended.promise).toBe("returned");
  });

  test("a HEAD request does not start the generator", async () => {
    let begun = false;
    const response = await app(async function* () {
      begun = true;
      yield "frame\n";
    }).request("/other/stream", { method: "HEAD" });
    expect(response.status).toBe(200);
    await new Promise((resolve) => setImmediate(resolve));
    expect(begun).toBe(false);
  });

  test("headers keep proxies from buffering frames", async () => {
    const { headers } = await app().request("/other/stream");
    expect(headers.get("cache-control")).toBe("no-cache");
    expect(headers.get("x-accel-buffering")).toBe("no");
  });
});
