import http from "node:http";
import { beforeAll, describe, expect, test } from "vitest";
import packageJson from "../../package.json" with { type: "json" };
import { ipcUrl } from "../support/ipc-address.ts";
import { postJson } from "../support/post-json.ts";
import { addModel, removeModel, sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";

const MODEL = "daybreak-mini";
let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await sharedDaemon();
});

async function get(path: string): Promise<unknown> {
  const response = await fetch(`${daemon.url}${path}`);
  expect(response.status).toBe(200);
  return await response.json();
}

function post(path: string, body: object): Promise<Response> {
  return postJson(`${daemon.url}${path}`, body);
}

function overSocket(path: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    http
      .get({ socketPath: daemon.socket, path }, (response) => {
        let body = "";
        response.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
        response.on("end", () => resolve(JSON.parse(body)));
      })
      .on("error", reject);
  });
}

describe("health and status", () => {
  test("GET /health answers ok", async () => {
    expect(await get("/health")).toEqual({ status: "ok" });
  });

  test("GET /status reports the daemon's state", async () => {
    expect(await get("/status")).toEqual({
      status: "ok",
      version: packageJson.version,
      uptime_secs: expect.any(Number),
      models_loaded: 1,
      active_requests: 0,
    });
  });

  test("GET /api/system/status, the same over TCP and over the socket", async () => {
    const expected = {
      version: packageJson.version,
      llama_cpp: expect.stringMatching(/^b\d+$/),
      uptime_secs: expect.any(Number),
      models_loaded: 1,
      http_endpoint: daemon.url,
      ipc_endpoint: ipcUrl(daemon.socket),
      default_model: MODEL,
      // Without a sandbox, `problem` explains why.
      sandbox: expect.objectContaining({ mode: "auto", wall: expect.any(String), parts: expect.any(Array) }),
      stats: {
        requests_total: expect.any(Number),
        tokens_generated: expect.any(Number),
        active_requests: 0,
        gpu_available: false,
        memory_used_bytes: expect.any(Number),
        memory_total_bytes: expect.any(Number),
      },
      kernels: "daybreak",
      gpu: { available: false, problem: expect.stringContaining("gpu.mode"), adapters: [] },
    };
    expect(await get("/api/system/status")).toEqual(expected);
    expect(await overSocket("/api/system/status")).toEqual(expected);
  });
});

async function metric(name: string): Promise<number> {
  const text = await (await fetch(`${daemon.url}/metrics`)).text();
  const line = text.split("\n").find((each) => each.startsWith(`${name} `));
  return Number(line?.slice(name.length + 1));
}

describe("GET /metrics", () => {
  test("counts a request, its tokens and its time", async () => {
    const requests = await metric('service_requests_total{endpoint="generate"}');
    const tokens = await metric("service_tokens_generated_total");
    const prompt = await metric("service_prompt_tokens_total");
    const count = await metric("service_request_duration_seconds_count");
    const answer: { completion_tokens: number; prompt_tokens: number } = await (
      await post("/api/generate", { prompt: "Hello", max_tokens: 5, temperature: 0 })
    ).json();
    expect(await metric('service_requests_total{endpoint="generate"}')).toBe(requests + 1);
    expect(await metric("service_tokens_generated_total")).toBe(tokens + answer.completion_tokens);
    expect(await metric("service_prompt_tokens_total")).toBe(prompt + answer.prompt_tokens);
    expect(await metric("service_request_duration_seconds_count")).toBe(count + 1);
    expect(await metric("service_requests_active")).toBe(0);
    expect(await metric(`service_tokens_per_second{model="${MODEL}"}`)).toBeGreaterThan(0);
  });

  test("shows the loaded model and the memory of its engine", async () => {
    const detail: { parameters: number; memory_bytes: number } = await (
      await fetch(`${daemon.url}/api/models/${MODEL}`)
    ).json();
    expect(await metric(`service_model_parameters{model="${MODEL}"}`)).toBe(detail.parameters);
    expect(detail.memory_bytes).toBeGreaterThan(1_000_000);
    expect(await metric("service_memory_used_bytes")).toBeGreaterThan(detail.memory_bytes);
    expect(await metric("service_models_loaded")).toBe(1);
    expect(await metric(`service_info{version="${packageJson.version}"}`)).toBe(1);
  });
});

describe("GET /api/events", () => {
  test("reports that a model is loaded and unloaded", async () => {
    const abort = new AbortController();
    const stream = await fetch(`${daemon.url}/api/events`, { signal: abort.signal });
    const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader();
    let seen = "";
    const until = async (pattern: RegExp): Promise<void> => {
      while (!pattern.test(seen)) seen += (await reader.read()).value ?? "";
    };
    await until(/: connected/);
    await addModel(daemon, "watched", `FROM ${MODEL}\n`);
    await until(/event: model-loaded\ndata: .*"model":"watched".*\n\n/);
    await removeModel(daemon, "watched");
    await until(/event: model-unloaded\ndata: .*"model":"watched".*\n\n/);
    abort.abort();
    expect(seen).toMatch(/"reason":"request"/);
  });
});

describe("documentation and page", () => {
  test("/openapi.json describes all routes of the specification", async () => {
    const response = await fetch(`${daemon.url}/openapi.json`);
    const { paths }: { paths: Record<string, object> } = await response.json();
    const routes = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(routes).toEqual(
      expect.arrayContaining([
        "GET /api/models",
        "GET /api/models/{name}",
        "POST /api/models/pull",
        "POST /api/models/load",
        "POST /api/models/{name}/unload",
        "DELETE /api/models/{name}",
        "POST /api/generate",
        "POST /api/chat",
        "POST /api/embeddings",
        "GET /api/system/status",
        "GET /api/defaults",
        "POST /api/defaults/{name}/use",
        "GET /health",
        "GET /status",
        "GET /metrics",
        "POST /v1/chat/completions",
        "POST /v1/completions",
        "POST /v1/responses",
        "POST /v1/embeddings",
        "GET /v1/models",
        "POST /v1/messages",
        "GET /ws/chat",
      ]),
    );
  });

  test("only the page and its files are served", async () => {
    const page = await fetch(`${daemon.url}/`, { headers: { accept: "text/html" } });
    expect(page.url).toBe(`${daemon.url}/ui/`);
    const html = await page.text();
    for (const [, file] of html.matchAll(/(?:src|href)="([\w.]+\.(?:js|css))"/g)) {
      expect((await fetch(`${daemon.url}/ui/${file}`)).status).toBe(200);
    }
    for (const path of [
      "/ui/../../package.json",
      "/ui/..%2f..%2fpackage.json",
      "/ui/%2e%2e/app.ts",
      "/ui/x",
    ]) {
      expect((await fetch(`${daemon.url}${path}`)).status).toBe(404);
    }
  });

  test("/ describes the daemon to programs", async () => {
    expect(await get("/")).toMatchObject({ name: "daybreak", version: packageJson.version });
  });

  test("/docs is a page whose files are all served", async () => {
    const page = await (await fetch(`${daemon.url}/docs`)).text();
    const parts = [...page.matchAll(/(?:src|href)="(docs\/[^"]+)"/g)].map(([, part]) => part);
    expect(parts).toContain("docs/swagger-ui-bundle.js");
    for (const part of parts) expect((await fetch(`${daemon.url}/${part}`)).status).toBe(200);
  });
});

describe("GET /api/defaults", () => {
  test("lists complete entries at the top level", async () => {
    const entries = await get("/api/defaults");
    expect(Array.isArray(entries)).toBe(true);
    expect(entries).toContainEqual({
      name: expect.any(String),
      description: expect.any(String),
      size_hint: expect.any(String),
      tags: expect.any(Array),
      from: expect.stringMatching(/^hf:[\w.-]+\/[\w.-]+/),
      has_thinking: expect.any(Boolean),
      has_vision: expect.any(Boolean),
      has_tools: expect.any(Boolean),
    });
  });

  test("an unknown default model is 404", async () => {
    const response = await fetch(`${daemon.url}/api/defaults/none/use`, { method: "POST" });
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ error: { type: "not_found", code: "model_not_found" } });
  });
});
