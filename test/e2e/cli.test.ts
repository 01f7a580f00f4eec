import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { activeRequests } from "../support/active-requests.ts";
import type { FixtureHub } from "../support/fixture-hub.ts";
import { ipcUrl } from "../support/ipc-address.ts";
import { sharedDaemon, sharedHub, shippedModel } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { runCli as runHere } from "../unit/cli/run-cli.ts";
import { type CliProcessOptions, runCli, startCli } from "./cli-process.ts";

const MODEL = "daybreak-mini";
/** Request with a long answer. */
const LONG_FORMAT = {
  type: "array",
  items: { type: "string", enum: ["again"] },
  minItems: 400,
  maxItems: 400,
};
/** Nothing listens at this port. */
const PORT_OF_NOBODY = "1";
const LONG = ["--max-tokens", "1500", "--no-think", "--format", JSON.stringify(LONG_FORMAT)];

let hub: FixtureHub;
let daemon: TestDaemon;
let folder: string;
/** Name of the model that is pulled. */
let pulled = "";
beforeAll(async () => {
  hub = await sharedHub();
  hub.setRepo("owner/tiny", { files: { "tiny-Q8_0.gguf": shippedModel() } });
  daemon = await sharedDaemon();
  folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-cli-"));
});
afterAll(async () => {
  await fetch(`${daemon.url}/api/models/${encodeURIComponent(pulled)}`, { method: "DELETE" });
  rmSync(folder, { recursive: true, force: true });
});

const promptTokens = ({ stdout }: { stdout: string }): unknown => JSON.parse(stdout).prompt_tokens;

/** Runs the program against the daemon of this file in a separate process. */
function cli(args: readonly string[], options: CliProcessOptions = {}) {
  return runCli(args, { ...options, env: { SERVICE_SOCKET: daemon.socket, ...options.env } });
}

/** Runs a command in this process, which is faster than starting another one. */
function command(args: readonly string[], env: Record<string, string> = atSocket()) {
  return runHere([...args], { env });
}

/** Environment in which no daemon of the user at the default port answers. */
function atSocket(): Record<string, string> {
  return { SERVICE_SOCKET: daemon.socket, SERVICE_HTTP_PORT: PORT_OF_NOBODY };
}

async function commandJson(...args: string[]): Promise<unknown> {
  const { code, stdout, stderr } = await command([...args, "--json"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout);
}

/** Waits until the daemon runs no request. */
async function untilIdle(): Promise<void> {
  await expect.poll(() => activeRequests(daemon)).toBe(0);
}

describe("inspecting the daemon", () => {
  it("doctor reports the daemon's addresses and its sandbox", async () => {
    const env = {
      SERVICE_SOCKET: daemon.socket,
      SERVICE_HTTP_ADDR: "127.0.0.1",
      SERVICE_HTTP_PORT: new URL(daemon.url).port,
      SERVICE_HUB_URL: hub.url,
      SERVICE_CACHE_DIR: folder,
      SERVICE_GPU_MODE: "off",
    };
    const { stdout } = await command(["doctor", "--json"], env);
    const { checks }: { checks: { name: string; verdict: string; message: string }[] } = JSON.parse(stdout);
    const found = Object.fromEntries(
      checks.map(({ name, verdict, message }) => [name, `${verdict}: ${message}`]),
    );
    expect(found).toMatchObject({
      Daemon: expect.stringMatching(/^ok: runs, version /),
      Port: expect.stringMatching(/^ok: .* the daemon listens there$/),
      Socket: `ok: ${daemon.socket}: the daemon listens there`,
      Sandbox: expect.stringContaining("Node's permission model"),
      Hub: `ok: ${hub.url} answers`,
    });
  });

  it("status, list, ps and show agree on the shipped model", async () => {
    expect(await commandJson("status")).toMatchObject({
      default_model: MODEL,
      http_endpoint: daemon.url,
      ipc_endpoint: ipcUrl(daemon.socket),
    });
    const model = expect.objectContaining({ alias: MODEL, is_default: true });
    expect(await commandJson("list")).toMatchObject({ models: expect.arrayContaining([model]) });
    expect(await commandJson("ps")).toMatchObject({ models: expect.arrayContaining([model]) });
    expect(await commandJson("show", MODEL)).toMatchObject({
      alias: MODEL,
      architecture: expect.any(String),
    });
  });

  it("works over TCP", async () => {
    const { code, stdout } = await command(["list", "--quiet", "--url", daemon.url], {});
    expect(code).toBe(0);
    expect(stdout.split("\n")).toContain(MODEL);
  });

  it("uses the configured address without a socket", async () => {
    const env = { SERVICE_SOCKET: "/nonexistent/d.sock", SERVICE_HTTP_PORT: new URL(daemon.url).port };
    expect((await command(["status"], env)).code).toBe(0);
  });
});

describe("exit codes", () => {
  it.each([
    [2, ["run", "hi", "--no-such-option"], "unknown option"],
    [2, ["no-such-command"], "unknown command"],
    [3, ["status", "--socket", "/nonexistent/d.sock"], "No daemon answers"],
    [4, ["show", "no-such-model"], "no-such-model"],
    [4, ["run", "hi", "-m", "no-such-model"], "no-such-model"],
    [5, ["load", MODEL], MODEL],
    [2, ["run", "hi", "-t", "-1"], "temperature"],
    [2, ["show", "no/name/at/all"], "no/name/at/all"],
    [2, ["run", "hi", "--top-p", "many"], "top-p"],
    [2, ["create", "x", "-f", "/nonexistent"], path.resolve("/nonexistent")],
  ])("%d for daybreak %j", async (code, args, message) => {
    const result = await command(args);
    expect(result).toMatchObject({ code, stdout: "", stderr: expect.stringContaining(message) });
  });
});

it("a process ends with the exit code of its command", async () => {
  expect(await cli(["show", "no-such-model"])).toMatchObject({ code: 4, stdout: "" });
});

describe("run", () => {
  it("prints statistics separately from the answer", async () => {
    const { code, stdout, stderr } = await cli(["run", "Hello", "-n", "8", "--verbose"]);
    expect(code).toBe(0);
    expect(stdout).not.toContain("tokens/s");
    expect(stderr).toMatch(/\[\d+ tokens in, \d+ tokens out, [\d.]+ tokens\/s, .+ in all\]\n$/);
  });

  it("accepts a prompt from an argument and from a pipe", async () => {
    const options = ["--json", "-n", "1"];
    const [given, piped, other] = await Promise.all([
      cli(["run", "Hello there", ...options]),
      cli(["run", ...options], { stdin: "Hello there\n" }),
      command(["run", "Hello there, how are you today?", ...options]),
    ]);
    expect(promptTokens(piped)).toBe(promptTokens(given));
    expect(promptTokens(other)).not.toBe(promptTokens(given));
  });

  // On Windows a process cannot send Ctrl-C to another one.
  it.skipIf(process.platform === "win32")(
    "is cancelled at the daemon by Ctrl-C, and ends with 130",
    async () => {
      const { child, speaking, result } = startCli(["run", "Tell me a story", ...LONG], {
        env: { SERVICE_SOCKET: daemon.socket },
      });
      await speaking;
      child.kill("SIGINT");
      expect(await result).toMatchObject({ code: 130, signal: null });
      await untilIdle();
    },
  );

  it("cancels the request when the reader of its output exits", async () => {
    const { child, speaking, result } = startCli(["run", "Tell me a story", ...LONG], {
      env: { SERVICE_SOCKET: daemon.socket },
    });
    await speaking;
    child.stdout.destroy();
    child.stderr.destroy();
    expect(await result).toMatchObject({ code: 141 });
    await untilIdle();
  });
});

describe.skipIf(process.platform === "win32")("an agent that launch runs", () => {
  it("gets variables and arguments, and its exit code becomes that of daybreak", async () => {
    const agent = `
const { ANTHROPIC_BASE_URL: url, ANTHROPIC_AUTH_TOKEN: key, ANTHROPIC_MODEL: model } = process.env;
const headers = { "content-type": "application/json", "x-api-key": key };
const messages = [{ role: "user", content: process.argv[2] }];
fetch(url + "/v1/messages", { method: "POST", headers, body: JSON.stringify({ model, max_tokens: 2, messages }) })
  .then((answer) => answer.json())
  .then(({ type, model }) => console.log(type, model))
  .then(() => process.exit(7));
`;
    const code = path.join(folder, "agent.cjs");
    writeFileSync(code, agent);
    // A shebang line allows no spaces and about a hundred characters in Node's path.
    const start = `#!/bin/sh\nexec "${process.execPath}" "${code}" "$@"\n`;
    writeFileSync(path.join(folder, "claude"), start, { mode: 0o755 });
    // The model is stretched to the context that agents need.
    const modelfile = `FROM ${MODEL}\nPARAMETER rope_scaling linear\nPARAMETER rope_freq_scale 0.125\n`;
    writeFileSync(path.join(folder, "Stretched"), modelfile);
    await command(["create", "stretched", "-f", path.join(folder, "Stretched")]);
    const PATH = `${folder}${path.delimiter}${process.env["PATH"]}`;
    const ran = await cli(["launch", "claude", "-m", "stretched", "--", "hi"], { env: { PATH } });
    const stderr = "Loading stretched with a context of 16384 tokens ...\n";
    expect(ran).toMatchObject({ code: 7, stdout: "message stretched\n", stderr });
    writeFileSync(path.join(folder, "claude"), "#!/gone/node\n");
    const gone = await cli(["launch", "claude", "-m", "stretched"], { env: { PATH } });
    const why = `cannot start ${path.join(folder, "claude")}: its interpreter "/gone/node" does not exist on this system. Install it again.`;
    expect(gone).toMatchObject({
      code: 126,
      stdout: "",
      stderr: expect.stringContaining(`daybreak: ${why}\n`),
    });
    await command(["rm", "stretched"]);
  });
});

describe("models", () => {
  it("are created from a Modelfile, copied, loaded, used, unloaded and removed", async () => {
    writeFileSync(
      path.join(folder, "Modelfile"),
      `FROM ${MODEL}\nSYSTEM Be brief.\nPARAMETER temperature 0\n`,
    );
    const done = async (...args: string[]): Promise<string> => {
      const { code, stdout, stderr } = await cli(args);
      expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: "" });
      return stdout;
    };
    await done("create", "pirate", "--file", path.join(folder, "Modelfile"));
    expect(await done("show", "pirate", "--modelfile")).toContain("Be brief.");
    await done("cp", "pirate", "corsair");
    await done("load", "corsair", "--context-size", "512");
    expect(await done("ps")).toMatch(/^corsair .* 512 /m);
    await done("unload", "corsair");
    expect(await done("ps")).not.toContain("corsair");

    const { code } = await cli(["run", "hi", "-m", "corsair", "-n", "4"]);
    expect(code).toBe(0);
    expect(await done("ps")).toMatch(/^corsair /m);

    await done("rm", "corsair", "pirate");
    expect(await done("list", "--quiet")).not.toMatch(/^(corsair|pirate)$/m);
  });

  it("are refused with the line of an error in the Modelfile", async () => {
    const { code, stderr } = await cli(["create", "broken", "-f", "-"], {
      stdin: `FROM ${MODEL}\nNONSENSE 1\n`,
    });
    expect(code).toBe(2);
    expect(stderr).toMatch(/line 2/i);
  });

  it("embed texts", async () => {
    const { stdout } = await cli(["embed", "one", "two"]);
    const vectors = stdout
      .trimEnd()
      .split("\n")
      .map((line) => z.array(z.number()).parse(JSON.parse(line)));
    expect(vectors).toHaveLength(2);
    // Batches of different sizes round differently.
    const close = vectors[0]!.map((value) => expect.closeTo(value, 5));
    expect(await commandJson("embed", "one")).toMatchObject({
      embeddings: [close],
      dimensions: close.length,
    });
  });
});

describe("search", () => {
  it("lists models of the hub and whether they fit", async () => {
    hub.setRepo("owner/found", { files: { "found-Q8_0.gguf": shippedModel() } });
    const { code, stdout } = await cli(["search", "found", "-n", "1"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^SPEC +SIZE +MEMORY +FITS\nhf:owner\/found:Q8_0 +4\.8 MB +\d+ MB +yes\n$/);
  });
});

describe("pull", () => {
  const spec = "hf:owner/tiny";

  it("resumes after Ctrl-C, reports progress, and fails for an unknown repository", async () => {
    const held = Promise.withResolvers<void>();
    hub.failNext(/^storage GET/, { pause: { after: 1_000_000, until: held.promise } });
    const interrupted = startCli(["pull", spec, "--json"], { env: { SERVICE_SOCKET: daemon.socket } });
    await interrupted.speaking;
    interrupted.child.kill("SIGINT");
    // On Windows a process cannot send Ctrl-C to another one, so it is killed.
    expect((await interrupted.result).code).toBe(process.platform === "win32" ? null : 130);
    held.resolve();

    const { code, stdout } = await cli(["pull", spec, "--json"]);
    const lines = stdout
      .trimEnd()
      .split("\n")
      .map((line): unknown => JSON.parse(line));
    expect(code).toBe(0);
    expect(lines[0]).toMatchObject({ status: "downloading", total_bytes: expect.any(Number) });
    expect(lines.at(-2)).toEqual({ status: "verifying" });
    expect(lines.at(-1)).toEqual({ status: "success", model: expect.stringContaining("tiny") });
    pulled = String(Object(lines.at(-1))["model"]);
    expect(hub.downloads.at(-1)?.headers.range).toMatch(/^bytes=[1-9]/);

    expect(await command(["pull", spec])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Pulled .*tiny/),
      stderr: "",
    });
    expect(await command(["pull", "hf:owner/none"])).toMatchObject({ code: 4, stdout: "" });
  });
});
