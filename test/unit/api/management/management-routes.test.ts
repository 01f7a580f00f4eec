import { describe, expect, test } from "vitest";
import { ServiceError } from "../../../../src/errors/service-error.ts";
import { FakeModels, fakeModel } from "../../../support/fake-models.ts";
import { fakeServices, type FakeOptions, appOf } from "../../../support/fake-services.ts";

function setup(models = new FakeModels(), options: FakeOptions = {}) {
  const services = fakeServices({ models, ...options });
  const app = appOf(services);
  const call = async (method: string, path: string, body?: object) => {
    const response = await app.request(path, {
      method,
      ...(body && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    });
    return { status: response.status, body: (await response.json()) as unknown };
  };
  return { models, services, app, call };
}

const listEntry = {
  alias: "fake",
  path: "/models/fake.gguf",
  parameters: 1_000_000,
  context_size: 2048,
  gpu_layers: 0,
  is_default: true,
  active_requests: 0,
};

describe("models", () => {
  test("GET /api/models lists the specified fields and more", async () => {
    const { call } = setup();
    const { status, body } = await call("GET", "/api/models");
    expect(status).toBe(200);
    expect(body).toEqual({
      models: [
        {
          ...listEntry,
          state: "loaded",
          source: "shipped",
          size_bytes: 1_100_000,
          quantization: "Q8_0",
          modified_at: "2026-01-02T00:00:00.000Z",
          capabilities: { vision: false, tools: false, thinking: false, json: true },
          purpose: "generate",
          memory_bytes: 50_000_000,
        },
      ],
    });
  });

  test("GET /api/models/<name> adds architecture, vocabulary and capabilities", async () => {
    const { call } = setup();
    const { body } = await call("GET", "/api/models/fake");
    expect(body).toMatchObject({
      ...listEntry,
      architecture: "llama",
      vocab_size: 100,
      capabilities: { vision: false, tools: false, thinking: false, json: true },
    });
  });

  test("lists a model that is being downloaded with its progress", async () => {
    const models = new FakeModels([fakeModel({ alias: "here", state: "downloading" })]);
    models.downloads.push(
      { name: "here", alias: "here", downloadedBytes: 1, totalBytes: 4 },
      { name: "hf:owner/to-come", alias: "to-come", downloadedBytes: 0, totalBytes: 0 },
    );
    const { body } = await setup(models).call("GET", "/api/models");
    expect(body).toHaveProperty("models.0.capabilities");
    expect(body).not.toHaveProperty("models.1.capabilities");
    expect({ body }).toMatchObject({
      body: {
        models: [
          { alias: "here", state: "downloading", progress: 0.25, parameters: expect.any(Number) },
          {
            alias: "to-come",
            state: "downloading",
            progress: 0,
            path: "",
            source: "hub",
            from: "hf:owner/to-come",
          },
        ],
      },
    });
  });

  test("GET /api/models/<name> reports speculation in the load settings", async () => {
    const model = fakeModel({ loadSettings: { cacheTypeK: "q8_0" }, speculation: "ngram" });
    const { body } = await setup(new FakeModels([model])).call("GET", "/api/models/fake");
    expect(body).toMatchObject({ load_settings: { cache_type_k: "q8_0", speculation: "ngram" } });
  });

  test.each([
    ["qwen3:0.6b", "qwen3:0.6b"],
    ["qwen3%3A0.6b", "qwen3:0.6b"],
    ["hf:owner/repo:Q4_K_M@main", "hf:owner/repo:Q4_K_M@main"],
    ["hf%3Aowner%2Frepo", "hf:owner/repo"],
  ])("a model name in a path may be %s", async (path, alias) => {
    const { call } = setup(new FakeModels([fakeModel({ alias })]));
    expect(await call("GET", `/api/models/${path}`)).toMatchObject({ status: 200, body: { alias } });
    expect(await call("GET", `/api/models/${path}/modelfile`)).toMatchObject({
      status: 200,
      body: { alias, modelfile: "FROM /models/fake.gguf\n" },
    });
    expect(await call("POST", `/api/models/${path}/unload`)).toEqual({
      status: 200,
      body: { status: "unloaded", alias },
    });
    expect(await call("DELETE", `/api/models/${path}`)).toEqual({
      status: 200,
      body: { status: "deleted", alias, source: "shipped" },
    });
  });

  test.each(["GET /api/models/none", "POST /api/models/none/unload", "DELETE /api/models/none"])(
    "%s returns 404 for an unknown model",
    async (request) => {
      const [method = "", path = ""] = request.split(" ");
      expect(await setup().call(method, path)).toMatchObject({
        status: 404,
        body: { error: { type: "not_found", code: "model_not_found" } },
      });
    },
  );

  test.each(["%00", "a%09b", "x".repeat(4000), "%7F"])(
    "rejects the model name %s in a path",
    async (name) => {
      expect(await setup().call("GET", `/api/models/${name}`)).toMatchObject({
        status: 400,
        body: { error: { code: "invalid_model_name" } },
      });
    },
  );

  test("load passes on every field and returns the loaded model", async () => {
    const models = new FakeModels([fakeModel({ state: "available" })]);
    const { call } = setup(models);
    const answer = await call("POST", "/api/models/load", {
      alias: "fake",
      path: "/models/other.gguf",
      gpu_layers: 3,
      context_size: 512,
      mmproj: "/models/mmproj.gguf",
      cache_type_k: "q8_0",
      rope_freq_scale: 0.5,
      context_shift: true,
      set_default: true,
    });
    expect(answer).toEqual({
      status: 200,
      body: { status: "loaded", alias: "fake", parameters: 1_000_000, context_size: 512, gpu_layers: 0 },
    });
    expect(models.loads).toEqual([
      {
        alias: "fake",
        path: "/models/other.gguf",
        gpuLayers: 3,
        contextSize: 512,
        fallbackContext: 4096,
        load: { cacheTypeK: "q8_0", ropeFreqScale: 0.5, contextShift: true },
        mmproj: "/models/mmproj.gguf",
        setDefault: true,
      },
    ]);
  });

  test("load with context_size 0 lets the daemon choose; without one it uses the specified default", async () => {
    const models = new FakeModels([
      fakeModel({ state: "available", contextSize: 8192, contextSource: "memory" }),
    ]);
    const { call } = setup(models);
    const { body } = await call("POST", "/api/models/load", { alias: "fake", context_size: 0 });
    expect(models.loads[0]).not.toHaveProperty("fallbackContext", 4096);
    expect(body).toMatchObject({ context_source: "memory" });
    const list = await call("GET", "/api/models");
    expect(list.body).toMatchObject({ models: [{ context_size: 8192, context_source: "memory" }] });
    expect(await call("POST", "/api/models/load", { alias: "fake", context_size: 15 })).toMatchObject({
      status: 400,
      body: { error: { message: "context_size: must be 0 or at least 16, got 15" } },
    });
  });

  test("null means the same as absent", async () => {
    const models = new FakeModels([fakeModel({ state: "available" })]);
    const { call } = setup(models);
    const files = { path: null, mmproj: null };
    const fields = { ...files, gpu_layers: null, context_size: null, cache_type_v: null, set_default: null };
    expect(await call("POST", "/api/models/load", { alias: "fake", ...fields })).toMatchObject({
      status: 200,
    });
    expect(models.loads).toEqual([{ alias: "fake", fallbackContext: 4096, load: {} }]);
    const pulled = await call("POST", "/api/models/pull", { name: "hf:o/r", stream: null });
    expect(pulled).toMatchObject({ status: 200, body: { status: "success" } });
    const made = { alias: "made", modelfile: "FROM fake", base_folder: null };
    expect(await call("POST", "/api/models/create", made)).toMatchObject({ status: 200 });
  });

  test("loading a loaded model and unloading an unloaded one return 409", async () => {
    const { call } = setup();
    const loaded = await call("POST", "/api/models/load", { alias: "fake" });
    expect(loaded).toMatchObject({ status: 409, body: { error: { type: "conflict" } } });
    await call("POST", "/api/models/fake/unload");
    const unloaded = await call("POST", "/api/models/fake/unload");
    expect(unloaded).toMatchObject({ status: 409, body: { error: { code: "model_already_unloaded" } } });
  });

  test("creates and copies models", async () => {
    const { call } = setup();
    expect(await call("POST", "/api/models/create", { alias: "mine", modelfile: "FROM fake" })).toEqual({
      status: 200,
      body: { status: "created", alias: "mine" },
    });
    expect(await call("POST", "/api/models/copy", { source: "mine", destination: "yours" })).toEqual({
      status: 200,
      body: { status: "copied", alias: "yours" },
    });
    const same = await call("POST", "/api/models/copy", { source: "mine", destination: "mine" });
    expect(same).toMatchObject({ status: 409, body: { error: { code: "model_exists" } } });
  });
});

describe("pull", () => {
  test("answers when the model is on disk", async () => {
    expect(await setup().call("POST", "/api/models/pull", { name: "new" })).toEqual({
      status: 200,
      body: { status: "success", model: "new", repo: "owner/repo", size_bytes: 100 },
    });
  });

  test("streams lines of JSON", async () => {
    const { app } = setup();
    const response = await app.request("/api/models/pull", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"name": "new", "stream": true}',
    });
    expect(response.headers.get("content-type")).toBe("application/x-ndjson");
    const lines = (await response.text()).trimEnd().split("\n");
    expect(lines.map((line): unknown => JSON.parse(line))).toEqual([
      { status: "downloading", progress: 1, total_bytes: 100, downloaded_bytes: 100 },
      { status: "verifying" },
      { status: "success", model: "new" },
    ]);
  });

  test.each([false, true])("returns 404 for an unknown repository with stream %s", async (stream) => {
    const models = new FakeModels();
    models.pull = () => Promise.reject(new ServiceError("hub_repo_not_found", "No such repository."));
    expect(await setup(models).call("POST", "/api/models/pull", { name: "new", stream })).toMatchObject({
      status: 404,
      body: { error: { code: "hub_repo_not_found" } },
    });
  });

  test("reports a failure in the stream as the last line", async () => {
    const models = new FakeModels();
    models.pull = async (_name, onProgress) => {
      onProgress({ status: "downloading", downloadedBytes: 1, totalBytes: 100 });
      await new Promise((resolve) => setImmediate(resolve));
      throw new ServiceError("hub_unreachable", "The hub went away.");
    };
    const response = await setup(models).app.request("/api/models/pull", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"name": "new", "stream": true}',
    });
    expect(response.status).toBe(200);
    const lines = (await response.text()).trimEnd().split("\n");
    expect(JSON.parse(lines.at(-1)!)).toMatchObject({
      error: { type: "model_error", code: "hub_unreachable" },
    });
  });
});

describe("status", () => {
  test("GET /status returns the daemon's state", async () => {
    expect(await setup().call("GET", "/status")).toEqual({
      status: 200,
      body: { status: "ok", version: "1.2.3", uptime_secs: 5, models_loaded: 1, active_requests: 0 },
    });
  });

  test("GET /api/system/status returns every specified field", async () => {
    expect(await setup().call("GET", "/api/system/status")).toEqual({
      status: 200,
      body: {
        version: "1.2.3",
        llama_cpp: expect.stringMatching(/^b\d+$/),
        uptime_secs: 5,
        models_loaded: 1,
        http_endpoint: "http://0.0.0.0:8080",
        ipc_endpoint: "ipc:///run/daybreak.sock",
        default_model: "fake",
        stats: {
          requests_total: 3,
          tokens_generated: 42,
          active_requests: 0,
          gpu_available: false,
          memory_used_bytes: expect.any(Number),
          memory_total_bytes: expect.any(Number),
        },
        gpu: { available: false, problem: "none in this test", adapters: [] },
        kernels: "daybreak",
        sandbox: { mode: "auto", wall: "none", parts: [], problem: "none in this test" },
      },
    });
  });

  test("GET /health returns starting, ok or draining", async () => {
    expect(await setup().call("GET", "/health")).toEqual({ status: 200, body: { status: "ok" } });
  });

  test("GET /metrics returns the Prometheus text format", async () => {
    const response = await setup().app.request("/metrics");
    expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(await response.text()).toMatch(/^# HELP service_info/);
  });
});

describe("shutdown", () => {
  test("is only available on the IPC endpoint", async () => {
    let calls = 0;
    const { app } = setup(undefined, { overrides: { shutdown: () => (calls += 1) } });
    const tcp = await app.request("/api/system/shutdown", { method: "POST" });
    expect(tcp.status).toBe(404);
    expect(calls).toBe(0);
    const ipc = await app.request("/api/system/shutdown", { method: "POST" }, { ipc: true });
    expect(await ipc.json()).toEqual({ status: "shutting_down" });
    expect(calls).toBe(1);
  });
});
