import { Readable } from "node:stream";
import { describe, expect, test } from "vitest";
import { FakeModels } from "../../../support/fake-models.ts";
import { fakeApp } from "../../../support/fake-services.ts";

const LOCAL = "127.0.0.1";
const FROM = { from: "ollama" };

function setup(models = new FakeModels()) {
  const app = fakeApp({ models });
  /** @param from address of the client; none: over IPC */
  const call = async (body: object, from?: string, headers: Record<string, string> = {}) => {
    const text = JSON.stringify(body);
    const incoming = Object.assign(Readable.from([Buffer.from(text)]), { socket: { remoteAddress: from } });
    const all = { "content-type": "application/json", ...headers };
    const env = from === undefined ? { ipc: true } : { incoming };
    return await app.request("/api/models/import", { method: "POST", headers: all, body: text }, env);
  };
  return { call, models };
}

function withSteps(): FakeModels {
  const models = new FakeModels();
  models.importSteps = [
    { status: "reading", folder: "/models", models: 2 },
    { status: "copying", name: "a:1b", copiedBytes: 3, totalBytes: 6 },
    {
      status: "imported",
      name: "a:1b",
      alias: "a:1b-2",
      placement: "copied",
      sizeBytes: 6,
      notes: ["Note."],
    },
    { status: "skipped", name: "b:1b", reason: "it is damaged" },
  ];
  return models;
}

describe("POST /api/models/import", () => {
  test("returns the result for each model", async () => {
    const { call, models } = setup(withSteps());
    const answer = await call({ ...FROM, models: ["a:1b"], copy: true });
    expect(await answer.json()).toEqual({
      status: "success",
      folder: "/models",
      models: [
        {
          status: "imported",
          name: "a:1b",
          alias: "a:1b-2",
          files: "copied",
          size_bytes: 6,
          notes: ["Note."],
        },
        { status: "skipped", name: "b:1b", reason: "it is damaged" },
      ],
    });
    expect(models.imports).toEqual([{ from: "ollama", names: ["a:1b"], copy: true }]);
  });

  test("streams each step as a line", async () => {
    const answer = await setup(withSteps()).call({ ...FROM, stream: true }, LOCAL);
    expect(answer.headers.get("content-type")).toBe("application/x-ndjson");
    const lines = (await answer.text()).trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line).status)).toEqual([
      "reading",
      "copying",
      "imported",
      "skipped",
      "success",
    ]);
    expect(lines[1]).toBe('{"status":"copying","name":"a:1b","copied_bytes":3,"total_bytes":6}');
  });

  test.for<[string, string, Record<string, string>]>([
    ["another machine", "192.168.0.7", {}],
    ["a proxy on this machine", LOCAL, { "x-forwarded-for": "192.168.0.7" }],
    ["a page of another site", LOCAL, { origin: "https://evil.example" }],
  ])("is forbidden for %s", async ([, from, headers]) => {
    const { call, models } = setup();
    const answer = await call(FROM, from, headers);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({
      error: { code: "path_not_allowed", message: expect.stringMatching(/daemon's machine/) },
    });
    expect(models.imports).toEqual([]);
  });

  test.for([{}, { from: "" }, { from: "x".repeat(5000) }, { from: "ollama", models: "a" }])(
    "returns 400 for %j",
    async (body) => {
      expect((await setup().call(body)).status).toBe(400);
    },
  );
});
