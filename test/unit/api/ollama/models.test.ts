import { describe, expect, test, vi } from "vitest";
import { parameterSize, tagListSchema } from "../../../../src/api/ollama/model-entry.ts";
import { fakeModel, FakeModels } from "../../../support/fake-models.ts";
import { fakeApp } from "../../../support/fake-services.ts";

const DIGEST = expect.stringMatching(/^[0-9a-f]{64}$/);

function appWith(models: FakeModels) {
  const app = fakeApp({ models });
  return async (method: string, path: string, body?: object): Promise<Response> =>
    app.request(`/ollama${path}`, {
      method,
      ...(body && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    });
}

describe("the base path", () => {
  test.for(["", "/"])('%j answers "Ollama is running" to GET and HEAD', async (path) => {
    const call = appWith(new FakeModels());
    expect(await (await call("GET", path)).text()).toBe("Ollama is running");
    const head = await call("HEAD", path);
    expect([head.status, await head.text()]).toEqual([200, ""]);
  });

  test("returns the API's version and the daemon's", async () => {
    const answer = await appWith(new FakeModels())("GET", "/api/version");
    // Clients parse three numbers, and require at least 0.14 for the responses and messages APIs.
    expect(await answer.json()).toEqual({
      version: expect.stringMatching(/^0\.(?:1[4-9]|[2-9]\d)\.\d+$/),
      daybreak: "1.2.3",
    });
  });
});

describe("model lists", () => {
  const made = fakeModel({
    alias: "made:1b",
    state: "available",
    source: { kind: "modelfile", base: "fake" },
    settings: { ...fakeModel().settings, system: "Hi." },
  });

  test("/api/tags lists every complete model with a tag and a unique digest", async () => {
    const half = fakeModel({ alias: "half", state: "downloading" });
    const answer = await appWith(new FakeModels([fakeModel(), half, made]))("GET", "/api/tags");
    const body = tagListSchema.parse(await answer.json());
    expect(body).toEqual({
      models: [
        {
          name: "fake:latest",
          model: "fake:latest",
          modified_at: "2026-01-02T00:00:00.000Z",
          size: 1_100_000,
          digest: DIGEST,
          details: {
            parent_model: "",
            format: "gguf",
            family: "llama",
            families: ["llama"],
            parameter_size: "1.00M",
            quantization_level: "Q8_0",
          },
        },
        expect.objectContaining({
          name: "made:1b",
          details: expect.objectContaining({ parent_model: "fake" }),
        }),
      ],
    });
    expect(body.models[0]?.digest).not.toBe(body.models[1]?.digest);
  });

  test("/api/ps lists the loaded models with their expiry", async () => {
    const soon = fakeModel({ alias: "soon", expiresAt: Date.UTC(2026, 0, 3), gpuLayers: 2 });
    const answer = await appWith(new FakeModels([fakeModel(), soon, made]))("GET", "/api/ps");
    expect(await answer.json()).toMatchObject({
      models: [
        {
          name: "fake:latest",
          size: 50_000_000,
          expires_at: "9999-12-31T23:59:59Z",
          size_vram: 0,
          context_length: 2048,
        },
        { name: "soon:latest", expires_at: "2026-01-03T00:00:00.000Z", size_vram: 550_000 },
      ],
    });
  });
});

describe("/api/show", () => {
  test.for([{ model: "fake" }, { name: "fake", verbose: true }])("shows %j", async (body) => {
    const settings = {
      ...fakeModel().settings,
      system: "Hi.",
      sampling: { temperature: 0.5 },
      stop: ["END", '\n\nUser "x":'],
      messages: [{ role: "user" as const, content: "hi" }],
    };
    const models = new FakeModels([fakeModel({ settings })]);
    const modelfile = 'FROM /models/fake.gguf\nLICENSE "MIT"\nRENDERER r\nREQUIRES 0.14.0\n';
    models.modelfile = async () => modelfile;
    const answer = await appWith(models)("POST", "/api/show", body);
    expect(await answer.json()).toMatchObject({
      modelfile,
      renderer: "r",
      requires: "0.14.0",
      messages: [{ role: "user", content: "hi" }],
      license: "MIT",
      parameters: expect.stringMatching(/^temperature +0\.5\nstop +"END"\nstop +"\\n\\nUser \\"x\\":"$/),
      system: "Hi.",
      template: "{{ messages }}",
      details: { family: "llama" },
      model_info: {
        "general.architecture": "llama",
        "general.basename": "Fake",
        "general.parameter_count": 1_000_000,
        "llama.context_length": 2048,
        "llama.embedding_length": 64,
      },
      capabilities: ["completion"],
    });
  });

  test("returns 400 without a name, and 404 for an unknown one", async () => {
    const call = appWith(new FakeModels());
    expect((await call("POST", "/api/show", {})).status).toBe(400);
    expect((await call("POST", "/api/show", { model: "none" })).status).toBe(404);
  });
});

describe("changes of models", () => {
  test("create answers with its steps, or at once with stream false", async () => {
    const call = appWith(new FakeModels());
    const streamed = await call("POST", "/api/create", { model: "new", from: "fake" });
    expect(streamed.headers.get("content-type")).toBe("application/x-ndjson");
    expect((await streamed.text()).trimEnd().split("\n").at(-1)).toBe('{"status":"success"}');
    const complete = await call("POST", "/api/create", { name: "new", from: "fake", stream: false });
    expect(await complete.json()).toEqual({ status: "success" });
  });

  test("create with quantize streams the progress, or returns the result", async () => {
    const models = new FakeModels();
    const quantize = vi.spyOn(models, "quantize");
    const call = appWith(models);
    const body = { model: "new", from: "fake", quantize: "q4_0", system: "Be brief." };
    const lines = (await (await call("POST", "/api/create", body)).text()).trimEnd().split("\n");
    expect(lines.map((line): unknown => JSON.parse(line))).toEqual([
      { status: "parsing GGUF" },
      {
        status: "quantizing F16 model to q4_0",
        digest: expect.stringMatching(/^0+$/),
        total: 100,
        completed: 100,
      },
      { status: "writing manifest" },
      { status: "success" },
    ]);
    const complete = await call("POST", "/api/create", { ...body, stream: false });
    expect(await complete.json()).toEqual({ status: "success" });
    expect(quantize.mock.lastCall?.[0]).toEqual({
      alias: "new",
      modelfile: expect.stringMatching(/^FROM fake\nSYSTEM .*Be brief/),
      quantization: "q4_0",
      mayRequantize: false,
    });
  });

  test("create warns about directives without an effect", async () => {
    const body = { model: "new", from: "fake", parser: "qwen3", stream: false };
    const answer = await appWith(new FakeModels())("POST", "/api/create", body);
    expect(answer.headers.get("x-daybreak-warning")).toMatch(/^PARSER qwen3 has no effect/);
  });

  test("a model can be created from an uploaded file", async () => {
    const models = new FakeModels();
    const create = vi.spyOn(models, "create");
    const call = appWith(models);
    const digest = `sha256:${"a".repeat(64)}`;
    const blob = `/api/blobs/${digest}`;
    expect((await call("HEAD", blob)).status).toBe(404);
    expect((await call("POST", blob, {})).status).toBe(201);
    expect((await call("HEAD", blob)).status).toBe(200);
    const made = await call("POST", "/api/create", {
      model: "new",
      files: { "a.gguf": digest },
      stream: false,
    });
    expect(await made.json()).toEqual({ status: "success" });
    expect(create).toHaveBeenCalledWith("new", `FROM /blobs/${digest.replace(":", "-")}.gguf\n`, {});
  });

  test("push is rejected with an explanation", async () => {
    const answer = await appWith(new FakeModels())("POST", "/api/push", { model: "new" });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toEqual({ error: expect.stringMatching(/does not publish models/) });
  });

  test.for([
    [{ files: { "a.gguf": "sha256:0" } }, /must be sha256/],
    [{ messages: [{ role: "tool", content: "hi" }] }, /messages\.0\.role/],
  ] as const)("rejects create with %j", async ([more, message]) => {
    const answer = await appWith(new FakeModels())("POST", "/api/create", {
      model: "new",
      from: "fake",
      ...more,
    });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toEqual({ error: expect.stringMatching(message) });
  });

  test("copy and delete answer with an empty body", async () => {
    const models = new FakeModels();
    const call = appWith(models);
    const copied = await call("POST", "/api/copy", { source: "fake", destination: "twin" });
    expect([copied.status, await copied.text()]).toEqual([200, ""]);
    const deleted = await call("DELETE", "/api/delete", { model: "twin" });
    expect([deleted.status, await deleted.text()]).toEqual([200, ""]);
    expect([...models.known.keys()]).toEqual(["fake"]);
    expect((await call("DELETE", "/api/delete", { name: "twin" })).status).toBe(404);
  });

  test("pull streams the progress in Ollama's format", async () => {
    const models = new FakeModels();
    models.pull = async (_name, onProgress) => {
      onProgress({ status: "downloading", downloadedBytes: 0, totalBytes: 100 });
      onProgress({ status: "downloading", downloadedBytes: 100, totalBytes: 100 });
      onProgress({ status: "verifying" });
      return { alias: "hf:owner/repo", repo: "owner/repo", sizeBytes: 100 };
    };
    const answer = await appWith(models)("POST", "/api/pull", { model: "hf.co/owner/repo" });
    const lines = (await answer.text())
      .trimEnd()
      .split("\n")
      .map((line): unknown => JSON.parse(line));
    expect(lines[0]).toEqual({ status: "pulling manifest" });
    expect(lines).toContainEqual({
      status: expect.stringMatching(/^pulling [0-9a-f]{12}$/),
      digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      total: 100,
      completed: 100,
    });
    expect(lines.slice(-3)).toEqual([
      { status: "verifying sha256 digest" },
      { status: "writing manifest" },
      { status: "success" },
    ]);
  });
});

test.for([{}, { stream: false }])(
  "pull of a model without a hub source succeeds without a download: %j",
  async (more) => {
    const models = new FakeModels();
    models.pull = () => Promise.reject(new Error("there is no hub"));
    const answer = await appWith(models)("POST", "/api/pull", { model: "fake:latest", ...more });
    expect((await answer.text()).trimEnd().split("\n").at(-1)).toBe('{"status":"success"}');
  },
);

test.for([
  [999, "999"],
  [260_000, "260.00K"],
  [494_030_000, "494.03M"],
  [7_241_732_096, "7.2B"],
] as const)("%i weights are displayed as %s", ([parameters, expected]) => {
  expect(parameterSize(parameters)).toBe(expected);
});
