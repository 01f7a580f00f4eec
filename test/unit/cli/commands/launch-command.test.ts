import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { shellArguments } from "../../../../src/cli/commands/launch.ts";
import { type FakeRoutes, refuse, startFakeDaemon } from "../fake-daemon.ts";
import { runCli } from "../run-cli.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-launch-"));
  for (const program of ["claude", "codex", "opencode", "qwen"]) {
    const ending = process.platform === "win32" ? ".EXE" : "";
    writeFileSync(path.join(folder, program + ending), "");
    chmodSync(path.join(folder, program + ending), 0o755);
  }
});
afterAll(() => rmSync(folder, { recursive: true }));

const model = (more: object = {}) => ({
  alias: "m",
  state: "available",
  context_size: 8192,
  trained_context_size: 131_072,
  load_settings: {},
  active_requests: 0,
  purpose: "generate",
  capabilities: { tools: true },
  ...more,
});
const stretched = (scale: number) =>
  model({ trained_context_size: 2048, load_settings: { rope_freq_scale: scale } });
const loaded = (contextSize: number) => ({
  status: "loaded",
  alias: "m",
  parameters: 1,
  context_size: contextSize,
  gpu_layers: 0,
});

/** Runs the command against a fake daemon; returns its requests and the printed JSON. */
async function launch(routes: FakeRoutes, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  await using daemon = await startFakeDaemon({
    "GET /api/models/m": model(),
    "POST /api/models/load": loaded(32_768),
    ...routes,
  });
  const command = ["launch", ...args, "--url", daemon.url, "--json"];
  const { code, stdout, stderr } = await runCli(command, { env: { PATH: folder, ...env } });
  const requests = daemon.requests.map(({ method, path: route, body }) => [`${method} ${route}`, body]);
  return { code, stderr, requests, url: daemon.url, run: stdout === "" ? undefined : JSON.parse(stdout) };
}

describe("launch", () => {
  it("loads the model with the context of agents and configures Claude Code", async () => {
    const { run, requests, url } = await launch({}, ["claude", "-m", "m"], { SERVICE_API_KEY: "secret" });
    expect(requests).toEqual([
      ["GET /api/models/m", undefined],
      ["POST /api/models/load", { alias: "m", context_size: 32_768 }],
    ]);
    expect(run).toMatchObject({
      model: "m",
      context_size: 32_768,
      args: [],
      env: {
        ANTHROPIC_BASE_URL: url,
        ANTHROPIC_AUTH_TOKEN: "secret",
        ANTHROPIC_API_KEY: "",
        ANTHROPIC_MODEL: "m",
        ANTHROPIC_DEFAULT_HAIKU_MODEL: "m",
        CLAUDE_CODE_MAX_CONTEXT_TOKENS: "32768",
        CLAUDE_CODE_MAX_OUTPUT_TOKENS: "4096",
      },
    });
    expect(path.basename(run.program)).toMatch(/^claude/);
  });

  it("configures Codex by flags before the user's arguments", async () => {
    await using daemon = await startFakeDaemon({
      "GET /api/models/m": model({ state: "loaded", context_size: 65_536 }),
    });
    const args = ["launch", "codex", "--json", "-m", "m", "--url", daemon.url, "--", "exec", "--json", "hi"];
    const { stdout } = await runCli(args, { env: { PATH: folder } });
    const run = JSON.parse(stdout);
    expect(run.args).toEqual(
      expect.arrayContaining([
        'model_provider="daybreak"',
        "model_context_window=65536",
        `model_providers.daybreak.base_url="${daemon.url}/v1"`,
        'model_providers.daybreak.wire_api="responses"',
      ]),
    );
    expect(run.args.slice(-5)).toEqual(["-m", "m", "exec", "--json", "hi"]);
    expect(run.env).toEqual({ DAYBREAK_API_KEY: "any" });
  });

  it("configures opencode and Qwen Code by variables", async () => {
    const { run, url } = await launch({}, ["opencode", "-m", "m"]);
    expect(JSON.parse(run.env.OPENCODE_CONFIG_CONTENT)).toMatchObject({
      model: "daybreak/m",
      provider: {
        daybreak: {
          options: { baseURL: `${url}/v1` },
          models: { m: { limit: { context: 32_768, output: 4096 } } },
        },
      },
    });
    const qwen = await launch({}, ["qwen-code", "-m", "m"]);
    expect(qwen.run).toMatchObject({
      args: ["--auth-type", "openai"],
      env: { OPENAI_BASE_URL: `${qwen.url}/v1`, OPENAI_API_KEY: "any", OPENAI_MODEL: "m" },
    });
  });

  it("uses the default model", async () => {
    const { run } = await launch({ "GET /api/system/status": { default_model: "m" } }, ["claude"]);
    expect(run.model).toBe("m");
  });

  it("reloads a model with a smaller context, unless it is in use", async () => {
    const idle = { "GET /api/models/m": model({ state: "loaded" }), "POST /api/models/m/unload": {} };
    const { requests } = await launch(idle, ["claude", "-m", "m"]);
    expect(requests.map(([route]) => route)).toEqual([
      "GET /api/models/m",
      "POST /api/models/m/unload",
      "POST /api/models/load",
    ]);
    const used = { "GET /api/models/m": model({ state: "loaded", active_requests: 1 }) };
    const refused = await launch(used, ["claude", "-m", "m"]);
    expect(refused).toMatchObject({ code: 5, run: undefined });
    expect(refused.stderr).toContain("in use with a context of 8192 tokens");
  });

  it("falls back to half of the default context without memory, but not of a requested one", async () => {
    const refuseAll = { "POST /api/models/load": refuse(503, "insufficient_memory", "overloaded") };
    const asked = async (...args: string[]) =>
      (await launch(refuseAll, ["claude", "-m", "m", ...args])).requests.slice(1).map(([, body]) => body);
    expect(await asked()).toEqual([
      { alias: "m", context_size: 32_768 },
      { alias: "m", context_size: 16_384 },
    ]);
    expect(await asked("--context-size", "65536")).toEqual([{ alias: "m", context_size: 65_536 }]);
  });

  it.each([
    ["was trained for too little context", { trained_context_size: 2048 }, "m was trained for 2048 tokens"],
    ["does not generate", { purpose: "embed" }, "m does not generate text"],
  ])("refuses a model that %s without loading it", async (_what, more, message) => {
    const { code, stderr, requests } = await launch({ "GET /api/models/m": model(more) }, [
      "codex",
      "-m",
      "m",
    ]);
    expect({ code, loads: requests.length }).toEqual({ code: 2, loads: 1 });
    expect(stderr).toContain(message);
  });

  it("prints a note for a model without tools", async () => {
    const toolless = { "GET /api/models/m": model({ capabilities: { tools: false } }) };
    expect((await launch(toolless, ["claude", "-m", "m"])).stderr).toContain(
      "the template of m has no tools",
    );
  });

  it("explains how to install a missing agent, before loading a model", async () => {
    await using daemon = await startFakeDaemon({});
    const args = ["launch", "claude", "-m", "m", "--url", daemon.url];
    const { code, stderr } = await runCli(args, { env: { PATH: "/nonexistent" } });
    expect({ code, requests: daemon.requests }).toEqual({ code: 4, requests: [] });
    expect(stderr).toContain("npm install -g @anthropic-ai/claude-code");
  });

  it("prints the command of a missing agent with --json", async () => {
    const { code, run } = await launch({}, ["claude", "-m", "m"], { PATH: "/nonexistent" });
    expect({ code, run }).toMatchObject({
      code: 0,
      run: { program: "claude", env: { ANTHROPIC_MODEL: "m" } },
    });
  });

  it("uses the stretched context of a model with rope_freq_scale", async () => {
    const { requests } = await launch({ "GET /api/models/m": stretched(0.0625) }, ["codex", "-m", "m"]);
    expect(requests.at(-1)).toEqual(["POST /api/models/load", { alias: "m", context_size: 32_768 }]);
    const tooLittle = await launch({ "GET /api/models/m": stretched(0.5) }, ["codex", "-m", "m"]);
    expect(tooLittle.stderr).toContain("was trained for 2048 tokens of context, and is stretched to 4096");
  });

  it("refuses a --context-size that is too small for agents", async () => {
    const { code, stderr, requests } = await launch({}, ["codex", "-m", "m", "--context-size", "2048"]);
    expect({ code, requests }).toEqual({ code: 2, requests: [] });
    expect(stderr).toContain("16384");
  });

  it("quotes all words of a script for cmd.exe", () => {
    expect(shellArguments(String.raw`C:\Program Files\qwen.cmd`, ["-p", 'say "hi" & go'])).toEqual([
      "/d",
      "/s",
      "/c",
      String.raw`""C:\Program Files\qwen.cmd" "-p" "say ""hi"" & go""`,
    ]);
  });
});
