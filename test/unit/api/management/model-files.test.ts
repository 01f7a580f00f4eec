import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FakeModels } from "../../../support/fake-models.ts";
import { fakeApp } from "../../../support/fake-services.ts";

const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-files-"));
afterAll(() => rmSync(folder, { recursive: true }));

const CONTENT = { "model.gguf": "weights", "see.gguf": "projector", "talk.gguf": "adapter" };
const file = (name: string): string => path.join(folder, name);
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

beforeAll(() => {
  for (const [name, text] of Object.entries(CONTENT)) writeFileSync(file(name), text);
});

function models(): FakeModels {
  const fake = new FakeModels();
  const get = fake.get.bind(fake);
  fake.get = async (name) => ({
    ...(await get(name)),
    files: [file("model.gguf")],
    projector: file("see.gguf"),
    adapters: [{ path: file("talk.gguf"), scale: 0.5, name: "talk" }],
  });
  return fake;
}

describe("GET /api/models/<name>/files", () => {
  test("lists the model, its projector and its adapters with size and SHA-256", async () => {
    const response = await fakeApp({ models: models() }).request("/api/models/fake/files");
    const { files }: { files: unknown } = await response.json();
    const url = "/api/models/fake/files";
    expect(files).toEqual([
      { role: "model", name: "model.gguf", size_bytes: 7, sha256: sha256("weights"), url: `${url}/0` },
      { role: "projector", name: "see.gguf", size_bytes: 9, sha256: sha256("projector"), url: `${url}/1` },
      {
        role: "adapter",
        name: "talk.gguf",
        size_bytes: 7,
        sha256: sha256("adapter"),
        scale: 0.5,
        url: `${url}/2`,
      },
    ]);
  });

  test("recomputes the SHA-256 of a changed file", async () => {
    const app = fakeApp({ models: models() });
    const first = async (): Promise<string | null> =>
      (await app.request("/api/models/fake/files/2", { method: "HEAD" })).headers.get("etag");
    expect(await first()).toBe(`"${sha256("adapter")}"`);
    writeFileSync(file("talk.gguf"), "another");
    expect(await first()).toBe(`"${sha256("another")}"`);
    writeFileSync(file("talk.gguf"), "adapter");
  });
});

describe("GET /api/models/<name>/files/<index>", () => {
  test("sends the file, or a range of it", async () => {
    const app = fakeApp({ models: models() });
    const complete = await app.request("/api/models/fake/files/1");
    expect([complete.status, await complete.text()]).toEqual([200, "projector"]);
    const part = await app.request("/api/models/fake/files/1", { headers: { range: "bytes=3-6" } });
    expect([part.status, await part.text()]).toEqual([206, "ject"]);
  });

  test.each([
    "/api/models/fake/files/3",
    "/api/models/other/files/0",
    "/api/models/fake/files/99999999999999999999",
  ])("returns 404 for %s", async (url) => {
    expect((await fakeApp({ models: models() }).request(url)).status).toBe(404);
  });

  test.each([
    "/api/models/fake/files/..%2f..%2fetc%2fpasswd",
    "/api/models/fake/files/-1",
    "/api/models/fake/files/",
  ])("rejects an index that is not a number: %s", async (url) => {
    expect((await fakeApp({ models: models() }).request(url)).status).toBe(404);
  });

  test("returns 404 if the file has been deleted", async () => {
    const fake = models();
    const get = fake.get.bind(fake);
    fake.get = async (name) => ({ ...(await get(name)), files: [file("gone.gguf")] });
    const response = await fakeApp({ models: fake }).request("/api/models/fake/files/0");
    expect([response.status, await response.json()]).toEqual([
      404,
      { error: expect.objectContaining({ code: "model_file_not_found" }) },
    ]);
  });

  test("requires the API key if keys are set", async () => {
    const app = fakeApp({ models: models(), config: { api_keys: ["secret"] } });
    expect((await app.request("/api/models/fake/files/0")).status).toBe(401);
    const headers = { authorization: "Bearer secret" };
    expect((await app.request("/api/models/fake/files/0", { headers })).status).toBe(200);
  });
});
