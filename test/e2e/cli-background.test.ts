import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LLAMA_CPP_BUILD } from "../../wasm/llama-cpp-build.ts";
import { ipcAddress } from "../support/ipc-address.ts";
import { cleanEnv, type CliResult, LAUNCHER, runCli } from "./cli-process.ts";
import { SYSTEM_NODE, SYSTEM_PATH } from "./system-node.ts";
import { PROC } from "../support/proc.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

let folder: string;
let env: Record<string, string>;
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-bg-"));
  env = {
    SERVICE_SOCKET: ipcAddress(folder),
    SERVICE_CACHE_DIR: path.join(folder, "cache"),
    SERVICE_HTTP_PORT: "0",
    SERVICE_GPU_MODE: "off", // looking for one is not part of what these tests describe
  };
});
afterEach(async () => {
  if (await answers()) await runCli(["stop"], { env });
  rmSync(folder, { recursive: true, force: true });
});

describe("run without a daemon", () => {
  it("starts a background daemon on loopback with its log in the cache folder, which stop ends", async () => {
    const first = await runCli(["run", "hi", "-n", "2"], { env });
    expect(first).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("Starting a daemon in the background"),
    });
    const second = await runCli(["run", "hi", "-n", "2"], { env });
    expect(second).toMatchObject({ code: 0, stderr: expect.not.stringContaining("Starting") });

    const { stdout } = await runCli(["status", "--json"], { env });
    const status: { http_endpoint: string } = JSON.parse(stdout);
    expect(status.http_endpoint).toMatch(/^http:\/\/127\.0\.0\.1:/);
    expect(readFileSync(path.join(folder, "cache/daemon.log"), "utf8")).toContain(status.http_endpoint);

    expect(await runCli(["stop"], { env })).toMatchObject({ code: 0, stdout: "The daemon is stopped.\n" });
    expect(await runCli(["status", "--url", status.http_endpoint], { env })).toMatchObject({ code: 3 });
  });

  it("reports why the daemon does not start", async () => {
    const { code, stderr } = await runCli(["run", "hi"], { env: { ...env, SERVICE_HTTP_ADDR: "192.0.2.1" } });
    expect(code).toBe(1);
    expect(stderr).toMatch(/daemon\.log:\n.*192\.0\.2\.1/s);
  });
});

/** Starts a daemon in the foreground without a model; resolves when it listens. */
async function foreground(
  command: string,
  args: string[],
  options: { cwd?: string; detached?: boolean } = {},
) {
  const child = spawn(command, args, {
    // An empty list; an empty variable would be ignored.
    env: { ...cleanEnv(), PATH: SYSTEM_PATH, SERVICE_MODELS_LOAD: ",", ...env },
    ...options,
  });
  let output = "";
  const ready = Promise.withResolvers<void>();
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    output += chunk;
    if (output.includes(" listens on ")) ready.resolve();
  });
  child.once("exit", (code) => ready.reject(new Error(`ended with ${code}: ${output}`)));
  await ready.promise;
  return child;
}

/** Starts a daemon and ends the process that started it. */
async function endStarter(command: string, args: string[], signal: "SIGTERM" | "SIGKILL"): Promise<void> {
  const child = await foreground(command, args, { cwd: ROOT, detached: true });
  const ended = once(child, "exit");
  child.kill(signal);
  await ended;
}

/** True if a daemon listens on the socket of this test. */
function answers(): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(env["SERVICE_SOCKET"]!);
    socket.once("error", () => resolve(false));
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
  });
}

async function exitCode(child: ChildProcess): Promise<unknown> {
  const [code] = await once(child, "exit");
  return code;
}

function version(cacheDir: string): Promise<CliResult> {
  return runCli(["--version"], { env: { SERVICE_CACHE_DIR: cacheDir, NODE_COMPILE_CACHE: "" } });
}

describe("the compile cache", () => {
  it("is stored in the cache folder", async () => {
    expect((await version(folder)).code).toBe(0);
    // The launcher also caches what it has detected about Node there.
    const kept = readdirSync(path.join(folder, "code")).filter((name) => name.startsWith(process.version));
    expect(kept).toHaveLength(1);
  });

  it("is not required on a read-only file system", async () => {
    writeFileSync(path.join(folder, "file"), "");
    expect(await version(path.join(folder, "file"))).toMatchObject({ code: 0, stderr: "" });
  });
});

describe("under the system's Node", () => {
  it("runs with any version", async () => {
    const manifest: { version: string } = JSON.parse(readFileSync(path.join(ROOT, "package.json"), "utf8"));
    const result = await runCli(["--version"], { node: SYSTEM_NODE, env: { PATH: SYSTEM_PATH } });
    expect(result).toMatchObject({
      code: 0,
      stdout: `${manifest.version} (llama.cpp ${LLAMA_CPP_BUILD})\n`,
      stderr: "",
    });
  });

  it.skipIf(process.platform === "win32")("serves until SIGTERM, which ends it in order", async () => {
    const child = await foreground(SYSTEM_NODE, [LAUNCHER, "serve"], { detached: true });
    const ended = exitCode(child);
    child.kill("SIGTERM");
    expect(await ended).toBe(0);
    expect(await answers()).toBe(false);
  });
});

describe.skipIf(process.platform === "win32")("a daemon in the foreground", () => {
  // The shell between npm and the daemon is visible only in /proc.
  it.skipIf(PROC.isMissing).each([
    ["ended", "SIGTERM"],
    ["killed", "SIGKILL"],
  ] as const)(`is not left behind when npm is %s${PROC.note}`, async (_what, signal) => {
    await endStarter("npm", ["start"], signal);
    await expect.poll(answers, { interval: 200 }).toBe(false);
  });

  it("ends when its launcher is killed", async () => {
    await endStarter(SYSTEM_NODE, [LAUNCHER, "serve"], "SIGKILL");
    await expect.poll(answers, { interval: 200 }).toBe(false);
  });
});

describe("in an archive of Yarn Plug'n'Play", () => {
  it("explains how to unplug the package", async () => {
    // Yarn's hook adds its version there.
    const hook = path.join(folder, "pnp.cjs");
    writeFileSync(hook, 'process.versions.pnp = "3";');
    const result = await runCli(["--version"], { env: { NODE_OPTIONS: `--require ${hook}` } });
    expect(result).toMatchObject({ code: 1, stderr: expect.stringContaining("nodeLinker: node-modules") });
  });
});
