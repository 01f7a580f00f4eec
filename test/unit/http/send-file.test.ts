import { Hono } from "hono";
import { describe, expect, test } from "vitest";
import type { AppEnv } from "../../../src/http/app-env.ts";
import { sendFile } from "../../../src/http/streaming/send-file.ts";

const BYTES = new TextEncoder().encode("0123456789");

function app(bytes: Uint8Array<ArrayBuffer> = BYTES): Hono<AppEnv> {
  const file = {
    size: bytes.length,
    etag: "abc",
    read: (start: number, end: number) => new Blob([bytes.subarray(start, end + 1)]).stream(),
  };
  return new Hono<AppEnv>().get("/file", (context) =>
    sendFile(context, file, { "content-type": "text/plain" }),
  );
}

async function get(headers: Record<string, string>, method = "GET") {
  const response = await app().request("/file", { method, headers });
  const { status } = response;
  const sent = ["content-length", "content-range", "etag", "accept-ranges"].map((name) =>
    response.headers.get(name),
  );
  return { status, sent, text: await response.text() };
}

describe("sendFile", () => {
  test("sends the full file with length and ETag", async () => {
    expect(await get({})).toEqual({ status: 200, sent: ["10", null, '"abc"', "bytes"], text: "0123456789" });
  });

  test("sends only headers for HEAD", async () => {
    expect(await get({}, "HEAD")).toEqual({ status: 200, sent: ["10", null, '"abc"', "bytes"], text: "" });
  });

  test.each([
    ["bytes=2-4", "234", "bytes 2-4/10"],
    ["bytes=7-", "789", "bytes 7-9/10"],
    ["bytes=7-99", "789", "bytes 7-9/10"],
    ["bytes=-3", "789", "bytes 7-9/10"],
    ["bytes=-99", "0123456789", "bytes 0-9/10"],
    ["bytes=9-9", "9", "bytes 9-9/10"],
  ])("sends a part for the range %s", async (range, text, contentRange) => {
    const answer = await get({ range });
    expect(answer).toMatchObject({ status: 206, text });
    expect(answer.sent.slice(0, 2)).toEqual([String(text.length), contentRange]);
  });

  test.each(["bytes=10-", "bytes=-0", "bytes=99-100"])("answers 416 for the range %s", async (range) => {
    const answer = await get({ range });
    expect(answer).toMatchObject({ status: 416, text: "" });
    expect(answer.sent[1]).toBe("bytes */10");
  });

  test.each(["bytes=1-2,4-5", "lines=1-2", "bytes=5-2", "bytes=a-b", "bytes="])(
    "sends the full file for the unsupported range %s",
    async (range) => {
      expect(await get({ range })).toMatchObject({ status: 200, text: "0123456789" });
    },
  );

  test("sends the full file if If-Range does not match", async () => {
    expect(await get({ range: "bytes=2-4", "if-range": '"other"' })).toMatchObject({ status: 200 });
    expect(await get({ range: "bytes=2-4", "if-range": '"abc"' })).toMatchObject({
      status: 206,
      text: "234",
    });
  });

  test("answers 304 to a client that has the file", async () => {
    expect(await get({ "if-none-match": '"abc"' })).toMatchObject({ status: 304, text: "" });
  });

  test("sends an empty file", async () => {
    const response = await app(new Uint8Array()).request("/file");
    expect([response.status, response.headers.get("content-length"), await response.text()]).toEqual([
      200,
      "0",
      "",
    ]);
  });
});
