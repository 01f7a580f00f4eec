import { once } from "node:events";
import { readdirSync, rmSync, truncateSync } from "node:fs";
import { createServer, type IncomingMessage, request } from "node:http";
import path from "node:path";
import { getRequestListener } from "@hono/node-server";
import { expect, onTestFinished, test } from "vitest";
import type { ConfigInput } from "../../../../../src/config/schema.ts";
import { type BatchApp, batchApp } from "../../../../support/batch-app.ts";

async function setUp(config: ConfigInput = {}): Promise<BatchApp & { readonly left: () => string[] }> {
  const app = await batchApp({ config });
  onTestFinished(async () => {
    await app[Symbol.asyncDispose]();
    rmSync(app.folder, { recursive: true, force: true });
  });
  return { ...app, left: () => readdirSync(path.join(app.folder, "batches/data/files")) };
}

function form(fields: Readonly<Record<string, string | File>>): RequestInit {
  const body = new FormData();
  for (const [name, value] of Object.entries(fields)) body.set(name, value);
  return { method: "POST", body };
}

const FILE = new File(["{}\n"], "in.jsonl");

test("accepts the file before or after the other fields, and sets its expiry", async () => {
  const { app } = await setUp();
  const life = { "expires_after[anchor]": "created_at", "expires_after[seconds]": "3600" };
  const first = await app.request("/v1/files", form({ file: FILE, purpose: "batch", ...life }));
  const stored: { created_at: number; expires_at: number } = JSON.parse(await first.text());
  expect(stored).toMatchObject({ object: "file", bytes: 3, filename: "in.jsonl", purpose: "batch" });
  expect(stored.expires_at - stored.created_at).toBe(3600);
  expect((await app.request("/v1/files", form({ purpose: "batch", file: FILE }))).status).toBe(200);
});

test.each([
  ["another purpose", { file: FILE, purpose: "fine-tune" }, "purpose"],
  ["no purpose", { file: FILE }, "purpose"],
  ["no file", { purpose: "batch" }, "file"],
  [
    "too short a life",
    { file: FILE, purpose: "batch", "expires_after[seconds]": "5" },
    "expires_after[seconds]",
  ],
])("rejects an upload with %s, and stores nothing", async (_what, fields, param) => {
  const { app, left } = await setUp();
  await app.request("/v1/files");
  const answer = await app.request("/v1/files", form(fields));
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({ error: { code: "invalid_parameter", param } });
  expect(left()).toEqual([]);
});

test("rejects an upload without a purpose", async () => {
  const { app } = await setUp();
  const answer = await app.request("/v1/files", form({ file: FILE }));
  expect(await answer.json()).toMatchObject({ error: { message: "purpose: is missing" } });
});

test("rejects a file as soon as it exceeds the size limit, and stores nothing", async () => {
  const { app, left } = await setUp({ batches: { max_file_size: 1024 } });
  const file = new File(["x".repeat(100_000)], "in.jsonl");
  const answer = await app.request("/v1/files", form({ file, purpose: "batch" }));
  expect(answer.status).toBe(413);
  expect(left()).toEqual([]);
});

test("rejects a form with too many parts or with two files", async () => {
  const { app, left } = await setUp();
  const many = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`field${at}`, "x"]));
  expect((await app.request("/v1/files", form({ file: FILE, ...many }))).status).toBe(400);
  const body = new FormData();
  for (const name of ["one", "two"]) body.append("file", FILE, name);
  expect((await app.request("/v1/files", { method: "POST", body })).status).toBe(400);
  expect(left()).toEqual([]);
});

test("rejects a body that is not a form", async () => {
  const { app } = await setUp();
  const answer = await app.request("/v1/files", { method: "POST", body: "{}" });
  expect(answer.status).toBe(415);
});

test("serves ranges of a file, and lists no files of other purposes", async () => {
  const { app } = await setUp();
  const stored = await app.request("/v1/files", form({ file: FILE, purpose: "batch" }));
  const { id }: { id: string } = JSON.parse(await stored.text());
  const part = await app.request(`/v1/files/${id}/content`, { headers: { range: "bytes=0-1" } });
  expect([part.status, await part.text()]).toEqual([206, "{}"]);
  const list = await app.request("/v1/files?purpose=vision");
  expect(await list.json()).toEqual({
    object: "list",
    data: [],
    first_id: null,
    last_id: null,
    has_more: false,
  });
});

test.each([
  ["is gone from", rmSync],
  ["has lost a part on", (file: string) => truncateSync(file, 1)],
])("returns 404 for the content of a file that %s the disk", async (_what, lose) => {
  const { app, folder } = await setUp();
  const stored = await app.request("/v1/files", form({ file: FILE, purpose: "batch" }));
  const { id }: { id: string } = JSON.parse(await stored.text());
  lose(path.join(folder, "batches/data/files", id));
  const answer = await app.request(`/v1/files/${id}/content`);
  expect(answer.status).toBe(404);
  expect(await answer.json()).toMatchObject({ error: { code: "file_not_found" } });
});

test("reads the rest of a rejected upload, so that its connection can serve the next request", async () => {
  const { app } = await setUp({ batches: { max_file_size: 1024 } });
  const listener = getRequestListener(app.fetch);
  const server = createServer((incoming, outgoing) => void listener(incoming, outgoing));
  server.listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const isRead = Promise.withResolvers<string>();
  server.on("request", (incoming) => incoming.once("end", () => isRead.resolve("the end")));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  const headers = { "content-type": "multipart/form-data; boundary=b" };
  const upload = request({ port: address.port, path: "/v1/files", method: "POST", headers });
  onTestFinished(() => void upload.destroy());
  const head = '--b\r\ncontent-disposition: form-data; name="file"; filename="in"\r\n\r\n';
  upload.write(`${head}${"x".repeat(100_000)}`);
  const [answer]: IncomingMessage[] = await once(upload, "response");
  expect(answer?.statusCode).toBe(413);
  upload.end("--b--");
  expect(await isRead.promise).toBe("the end");
});
