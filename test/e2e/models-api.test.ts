import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type PullLine, pullLineSchema } from "../../src/api/wire/models.ts";
import { startFixtureHub, type FixtureHub } from "../support/fixture-hub.ts";
import { FILES_HAVE_LINKS } from "../support/links.ts";
import { addToOllama } from "../support/model-stores.ts";
import { PROGRAM } from "../support/program.ts";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";

const MODEL = "daybreak-mini";
const MODEL_FILE = path.join(PROGRAM, "models/daybreak-mini.gguf");
let daemon: TestDaemon;
let hub: FixtureHub;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-models-"));
  const model = readFileSync(MODEL_FILE);
  addToOllama(path.join(folder, "watched"), { name: "watched:1b", system: "Be brief." });
  hub = await startFixtureHub({
    repos: {
      "owner/repo": { files: { "repo-Q8_0.gguf": model, "README.md": "A model." } },
      "owner/gated": { files: { "gated-Q8_0.gguf": model }, gatedTo: ["a token"] },
      "owner/empty": { files: { "README.md": "No model." } },
    },
  });
  daemon = await startDaemon({
    env: { HUB_URL: hub.url },
    args: [
      "--models-allowed-dirs",
      `${folder},${path.dirname(MODEL_FILE)}`,
      "--models-dirs",
      path.join(folder, "watched"),
    ],
  });
});

afterAll(async () => {
  await daemon.stop();
  await hub.close();
  rmSync(folder, { recursive: true });
});

async function call(
  method: string,
  route: string,
  body?: object,
): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${daemon.url}${route}`, {
    method,
    ...(body && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
  });
  return { status: response.status, body: await response.json() };
}

const failure = (status: number, code: string) => ({ status, body: { error: { code } } });

describe("listing and inspecting", () => {
  test("the shipped model is listed with the fields of its file", async () => {
    const { body } = await call("GET", "/api/models");
    expect(body).toMatchObject({
      models: expect.arrayContaining([
        expect.objectContaining({
          alias: MODEL,
          path: MODEL_FILE,
          parameters: expect.any(Number),
          context_size: expect.any(Number),
          context_source: "trained",
          gpu_layers: 0,
          is_default: true,
          active_requests: 0,
          state: "loaded",
        }),
      ]),
    });
    const detail = await call("GET", `/api/models/${MODEL}`);
    expect(detail).toMatchObject({
      status: 200,
      body: {
        alias: MODEL,
        architecture: expect.any(String),
        vocab_size: expect.any(Number),
        capabilities: {
          vision: expect.any(Boolean),
          tools: expect.any(Boolean),
          thinking: expect.any(Boolean),
          json: expect.any(Boolean),
        },
      },
    });
  });

  test("an unknown model is 404 model_not_found on every route", async () => {
    for (const [method, route] of [
      ["GET", "/api/models/none"],
      ["GET", "/api/models/none/modelfile"],
      ["DELETE", "/api/models/none"],
      ["POST", "/api/models/none/unload"],
    ] as const) {
      expect(await call(method, route)).toMatchObject({
        status: 404,
        body: { error: { type: "not_found", code: "model_not_found" } },
      });
    }
  });
});

describe("a model made from a Modelfile", () => {
  test("reports its settings, and its printed Modelfile recreates it", async () => {
    const modelfile = [
      `FROM ${MODEL}`,
      "PARAMETER temperature 0.25",
      "PARAMETER num_ctx 512",
      'PARAMETER stop "a \\"quoted\\"\\n end"',
      "PARAMETER stop two",
      'SYSTEM """You are brief.\nVery."""',
      "TEMPLATE {% for m in messages %}{{ m.content }}{% endfor %}",
      "CAPABILITY tools false",
      "LICENSE free for all",
      "",
    ].join("\n");
    const shown = {
      settings: { temperature: 0.25, num_ctx: 512, stop: ['a "quoted"\n end', "two"] },
      system: "You are brief.\nVery.",
      template: "{% for m in messages %}{{ m.content }}{% endfor %}",
      license: "free for all",
      context_size: 512,
      capabilities: { tools: false },
    };
    await call("POST", "/api/models/create", { alias: "first", modelfile });
    const printed = await call("GET", "/api/models/first/modelfile");
    const again = Object.assign({}, printed.body, { alias: "second" });
    expect(await call("POST", "/api/models/create", again)).toMatchObject({ status: 200 });

    const [first, second] = [await call("GET", "/api/models/first"), await call("GET", "/api/models/second")];
    expect(first.body).toMatchObject(shown);
    expect(second.body).toEqual(Object.assign({}, first.body, { alias: "second" }));
    for (const alias of ["first", "second"]) await call("DELETE", `/api/models/${alias}`);
  });
});

describe("loading and unloading", () => {
  test("switches between loaded and available, with 409 if nothing changes", async () => {
    expect(await call("POST", "/api/models/load", { alias: MODEL })).toMatchObject(
      failure(409, "model_already_loaded"),
    );
    expect(await call("POST", `/api/models/${MODEL}/unload`)).toEqual({
      status: 200,
      body: { status: "unloaded", alias: MODEL },
    });
    expect(await call("POST", `/api/models/${MODEL}/unload`)).toMatchObject(
      failure(409, "model_already_unloaded"),
    );
    // A request loads the model in every API.
    const messages = [{ role: "user", content: "hi" }];
    expect(
      await call("POST", "/v1/chat/completions", { model: MODEL, messages, max_tokens: 1 }),
    ).toMatchObject({ status: 200, body: { model: MODEL } });
    expect(await call("GET", `/api/models/${MODEL}`)).toMatchObject({
      body: { state: "loaded", expires_at: expect.any(String) },
    });
    await call("POST", `/api/models/${MODEL}/unload`);
    expect(
      await call("POST", "/api/models/load", { alias: MODEL, context_size: 512, set_default: true }),
    ).toEqual({
      status: 200,
      body: {
        status: "loaded",
        alias: MODEL,
        parameters: expect.any(Number),
        context_size: 512,
        context_source: "request",
        gpu_layers: 0,
      },
    });
  });

  test("a file is loaded under a given name", async () => {
    const loaded = await call("POST", "/api/models/load", { alias: "by-path", path: MODEL_FILE });
    expect(loaded).toMatchObject({ status: 200, body: { status: "loaded", alias: "by-path" } });
    expect(await call("DELETE", "/api/models/by-path")).toEqual({
      status: 200,
      body: { status: "deleted", alias: "by-path", source: "file" },
    });
    expect(await call("GET", "/api/models/by-path")).toMatchObject(failure(404, "model_not_found"));
    expect(await call("GET", `/api/models/${MODEL}`)).toMatchObject({ status: 200 });
  });

  test("a model in a configured folder is listed, answers, and cannot be deleted", async () => {
    const name = "watched:1b";
    const detail = await call("GET", `/api/models/${name}`);
    expect(detail).toMatchObject({ status: 200, body: { source: "file", system: "Be brief." } });
    expect((await call("POST", "/api/models/load", { alias: name, context_size: 64 })).status).toBe(200);
    const answer = await call("POST", "/api/generate", { model: name, prompt: "Hi", max_tokens: 2 });
    expect(answer).toMatchObject({ status: 200, body: { model: name } });
    expect((await call("POST", `/api/models/${name}/unload`)).status).toBe(200);
    expect(await call("DELETE", `/api/models/${name}`)).toMatchObject(failure(400, "unsupported_feature"));
  });

  test("paths outside of allowed folders are refused", async () => {
    writeFileSync(path.join(folder, "text.gguf"), "this is not a model");
    mkdirSync(path.join(folder, "folder.gguf"), { recursive: true });
    const load = (file: string) => call("POST", "/api/models/load", { alias: "bad", path: file });
    expect(await load("/etc/passwd")).toMatchObject(failure(400, "path_not_allowed"));
    expect(await load(path.join(folder, "..", "x.gguf"))).toMatchObject(failure(400, "path_not_allowed"));
    expect(await load(path.join(folder, "none.gguf"))).toMatchObject(failure(404, "model_file_not_found"));
    expect((await load("/dev/zero")).status).toBe(400);
    expect(await load(path.join(folder, "folder.gguf"))).toMatchObject(failure(400, "path_not_allowed"));
    expect(await load(path.join(folder, "text.gguf"))).toMatchObject(failure(400, "invalid_model_file"));
    expect(await call("GET", "/api/models/bad")).toMatchObject({ status: 404 });
  });

  test.skipIf(!FILES_HAVE_LINKS)("links that lead out of an allowed folder are refused", async () => {
    const link = path.join(folder, "link.gguf");
    symlinkSync("/etc/passwd", link);
    expect(await call("POST", "/api/models/load", { alias: "bad", path: link })).toMatchObject(
      failure(400, "path_not_allowed"),
    );
  });
});

describe("creating models", () => {
  test("create, copy, show and delete", async () => {
    const modelfile = `FROM ${MODEL}\nPARAMETER temperature 0.5\nSYSTEM You answer in verse.\n`;
    expect(await call("POST", "/api/models/create", { alias: "poet", modelfile })).toEqual({
      status: 200,
      body: { status: "created", alias: "poet" },
    });
    expect(await call("POST", "/api/models/copy", { source: "poet", destination: "bard" })).toEqual({
      status: 200,
      body: { status: "copied", alias: "bard" },
    });
    expect(await call("GET", "/api/models/bard")).toMatchObject({
      status: 200,
      body: { source: "modelfile", system: "You answer in verse." },
    });
    expect(await call("GET", "/api/models/poet/modelfile")).toMatchObject({
      status: 200,
      body: { alias: "poet", modelfile: expect.stringMatching(/SYSTEM .*You answer in verse\./) },
    });
    for (const alias of ["poet", "bard"]) {
      expect(await call("DELETE", `/api/models/${alias}`)).toMatchObject({ status: 200 });
    }
    expect(await call("GET", "/api/models/poet")).toMatchObject({ status: 404 });
  });

  test("a Modelfile with an error names the line", async () => {
    const answer = await call("POST", "/api/models/create", {
      alias: "bad",
      modelfile: `FROM ${MODEL}\nNONSENSE 1\n`,
    });
    expect(answer).toMatchObject(failure(400, "invalid_modelfile"));
    expect(answer.body).toMatchObject({ error: { message: expect.stringMatching(/line 2/i) } });
  });
});

describe("pulling", () => {
  const size = statSync(MODEL_FILE).size;

  test("streams its progress, and the model can then be loaded, used and deleted", async () => {
    const response = await fetch(`${daemon.url}/api/models/pull`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"name": "hf:owner/repo", "stream": true}',
    });
    expect(response.headers.get("content-type")).toBe("application/x-ndjson");
    const lines = (await response.text()).trimEnd().split("\n");
    const all = lines.map((line): PullLine => pullLineSchema.parse(JSON.parse(line)));
    const progress = all.flatMap((line) => (line.status === "downloading" ? [line.progress] : []));
    expect(progress).toEqual(progress.toSorted((a, b) => a - b));
    const [last, verifying, success] = all.slice(-3);
    expect(last).toEqual({ status: "downloading", progress: 1, total_bytes: size, downloaded_bytes: size });
    expect(verifying).toEqual({ status: "verifying" });
    expect(success).toEqual({ status: "success", model: expect.stringContaining("owner/repo") });
    const alias = success?.status === "success" ? success.model : "";
    const route = `/api/models/${encodeURIComponent(alias)}`;
    expect(await call("GET", route)).toMatchObject({
      status: 200,
      body: { source: "hub", state: "available" },
    });
    expect(await call("POST", "/api/models/load", { alias })).toMatchObject({ status: 200 });
    const answer = await call("POST", "/api/generate", { model: alias, prompt: "hi", max_tokens: 1 });
    expect(answer).toMatchObject({ status: 200, body: { model: alias, done: true } });
    expect(await call("DELETE", route)).toEqual({
      status: 200,
      body: { status: "deleted", alias, source: "hub" },
    });
    expect(await call("GET", route)).toMatchObject(failure(404, "model_not_found"));
  });

  test("sends one response without a stream", async () => {
    const first = await call("POST", "/api/models/pull", { name: "hf:owner/repo:Q8_0" });
    expect(first).toEqual({
      status: 200,
      body: {
        status: "success",
        model: expect.stringContaining("owner/repo"),
        repo: "owner/repo",
        size_bytes: size,
      },
    });
    const downloads = hub.downloads.length;
    expect(await call("POST", "/api/models/pull", { name: "hf:owner/repo:Q8_0" })).toEqual(first);
    expect(hub.downloads.length).toBe(downloads);
  });

  test.each([
    ["hf:owner/unknown", 404, "hub_repo_not_found"],
    ["hf:owner/gated", 403, "hub_access_denied"],
    ["hf:owner/empty", 404, "no_gguf_in_repo"],
    ["no-such-alias", 404, "model_not_found"],
  ])("%s is %d %s, with a stream and without", async (name, status, code) => {
    for (const stream of [false, true]) {
      expect(await call("POST", "/api/models/pull", { name, stream })).toMatchObject(failure(status, code));
    }
  });
});

describe("names", () => {
  const hostile = [
    "../x",
    "..%2fx",
    "a%00b",
    "%2fetc%2fpasswd",
    "C:%5Cx",
    "%5C%5Chost%5Cshare",
    "hf:a/../../b",
    "hf:a%2F..%2F..%2Fb",
    "x".repeat(4096),
    "%D1%80%D0%B0%D1%83",
    "con",
    "nul.gguf",
    "__proto__",
    "constructor",
  ];

  test.each(hostile)("%s is refused in a path", async (name) => {
    for (const [method, route] of [
      ["GET", `/api/models/${name}`],
      ["DELETE", `/api/models/${name}`],
      ["POST", `/api/models/${name}/unload`],
    ] as const) {
      const { status, body } = await call(method, route);
      expect([400, 404, 405]).toContain(status);
      expect(body).toMatchObject({ error: { message: expect.any(String) } });
    }
  });

  test.each(hostile.map(decodeURIComponent))("%j is refused in a body", async (name) => {
    for (const [route, body] of [
      ["/api/models/pull", { name }],
      ["/api/models/load", { alias: name }],
      ["/api/models/copy", { source: MODEL, destination: `../${name}` }],
      ["/api/generate", { model: name, prompt: "hi" }],
    ] as const) {
      const { status } = await call("POST", route, body);
      expect([400, 404]).toContain(status);
    }
  });
});
