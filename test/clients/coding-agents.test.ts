import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";
import { AgentWorkplace, RUN_TEST_MS } from "./agent-workplace.ts";
import { loadScripted } from "./load-scripted.ts";

/** Prompt for each agent; a model that follows a script ignores it. */
const TASK = "Make proof.txt, then tell me when the birds begin.";
const COMMAND = "echo made > proof.txt";
const ANSWER = "The dawn chorus begins at half past four.";

/** Result of a run; a failing test also prints its standard error. */
const ANSWERED = { code: 0, stdout: expect.stringContaining(ANSWER), stderr: expect.any(String) };

vi.setConfig({ testTimeout: RUN_TEST_MS });

let daemon: TestDaemon;
/** How long the daemon's log was when the present try of a test began. */
let logged = 0;

beforeAll(async () => {
  daemon = await startDaemon({ args: ["--models-load", "", "--models-slots", "1"] });
  const scripts = {
    "script-for-claude": { name: "Bash", arguments: { command: COMMAND, description: "Makes a file" } },
    "script-for-codex": { name: "exec_command", arguments: { cmd: COMMAND } },
    "script-for-opencode": { name: "bash", arguments: { command: COMMAND } },
    "script-for-qwen": { name: "run_shell_command", arguments: { command: COMMAND, is_background: false } },
  };
  for (const [alias, call] of Object.entries(scripts)) {
    await loadScripted(daemon, alias, { call, answer: ANSWER });
  }
});
beforeEach(() => {
  logged = daemon.logs().length;
});
afterAll(() => daemon.stop());

/** With which statuses the daemon has answered requests of the present test on a path. */
function statuses(path: string): Set<unknown> {
  const lines = daemon.logs().slice(logged).split("\n");
  const requests = lines.filter((line) => line.includes('"msg":"request"') && line.includes(`"${path}"`));
  return new Set(requests.map((line) => z.object({ status: z.number() }).parse(JSON.parse(line)).status));
}

test("Claude Code, launched, runs a command and answers, over messages", async () => {
  using workplace = new AgentWorkplace();
  const args = ["-p", "--allowedTools", "Bash", "--", TASK];
  const ended = await workplace.launch(daemon, "claude", "script-for-claude", args, {
    DISABLE_AUTOUPDATER: "1",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  });
  expect(ended).toEqual(ANSWERED);
  expect(workplace.read("proof.txt")).toBe("made\n");
  expect(statuses("/v1/messages")).toEqual(new Set([200]));
});

describe("Codex", () => {
  const options = ["exec", "--skip-git-repo-check", "--ephemeral", "-m", "script-for-codex"];
  // Its sandbox is not what is tried, and not every machine can have it.
  const unconfined = "--dangerously-bypass-approvals-and-sandbox";
  const quiet = "check_for_update_on_startup = false\n[analytics]\nenabled = false\n";

  test("runs a command and answers, over responses", async () => {
    using workplace = new AgentWorkplace();
    workplace.configure(
      ".codex/config.toml",
      `model_provider = "daybreak"
model_context_window = 131072
${quiet}
[model_providers.daybreak]
name = "Daybreak"
base_url = "${daemon.url}/v1"
wire_api = "responses"
`,
    );
    const ended = await workplace.run("codex", [...options, unconfined, TASK]);
    expect(ended).toEqual(ANSWERED);
    expect(workplace.read("proof.txt")).toBe("made\n");
    expect(statuses("/v1/responses")).toEqual(new Set([200]));
  });

  test("does the same when it is launched", async () => {
    using workplace = new AgentWorkplace();
    workplace.configure(".codex/config.toml", quiet);
    const args = ["exec", "--skip-git-repo-check", "--ephemeral", unconfined, TASK];
    const ended = await workplace.launch(daemon, "codex", "script-for-codex", args);
    expect(ended).toEqual(ANSWERED);
    expect(workplace.read("proof.txt")).toBe("made\n");
  });

  test("does the same with --oss, which asks an Ollama for the model first", async () => {
    using workplace = new AgentWorkplace();
    workplace.configure(".codex/config.toml", quiet);
    const args = [...options, unconfined, "--oss", "--local-provider", "ollama", TASK];
    const env = { CODEX_OSS_BASE_URL: `${daemon.url}/ollama/v1` };
    const ended = await workplace.run("codex", args, env);
    expect(ended).toEqual(ANSWERED);
    expect(workplace.read("proof.txt")).toBe("made\n");
  });
});

test("opencode, launched, runs a command and answers, over chat completions", async () => {
  using workplace = new AgentWorkplace();
  const config = { autoupdate: false, share: "disabled", enabled_providers: ["daybreak"] };
  workplace.configure(".config/opencode/opencode.json", JSON.stringify(config));
  const ended = await workplace.launch(daemon, "opencode", "script-for-opencode", ["run", TASK], {
    OPENCODE_DISABLE_AUTOUPDATE: "1",
    OPENCODE_DISABLE_MODELS_FETCH: "1",
    OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
    OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
  });
  expect(ended).toEqual(ANSWERED);
  expect(workplace.read("proof.txt")).toBe("made\n");
});

test("Qwen Code, launched, runs a command and answers, over chat completions", async () => {
  using workplace = new AgentWorkplace();
  workplace.configure(
    ".qwen/settings.json",
    JSON.stringify({ general: { disableAutoUpdate: true }, privacy: { usageStatisticsEnabled: false } }),
  );
  const ended = await workplace.launch(daemon, "qwen-code", "script-for-qwen", ["--yolo", "-p", TASK]);
  expect(ended).toEqual(ANSWERED);
  expect(workplace.read("proof.txt")).toBe("made\n");
});
