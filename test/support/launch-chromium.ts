import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { findInPath, isProgram } from "../../src/cli/launch/coding-agents.ts";

const POLL_INTERVAL_MS = 50;

const targetsSchema = z.array(z.object({ webSocketDebuggerUrl: z.string() }));

/** Headless Chromium with a temporary profile, controlled by the DevTools protocol. */
interface Chromium extends AsyncDisposable {
  /** Port of DevTools on this machine. */
  readonly port: string;
  /** WebSocket address of its first page. */
  readonly page: string;
}

export interface LaunchOptions {
  readonly signal: AbortSignal;
  /** Flags in place of --disable-gpu. */
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** @throws Error when the browser does not start */
export async function launchChromium(
  program: string,
  { signal, flags = ["--disable-gpu"], env = {} }: LaunchOptions,
): Promise<Chromium> {
  const profile = mkdtempSync(path.join(os.tmpdir(), "daybreak-chromium-"));
  const args = ["--headless", ...flags, "--no-first-run", "--remote-debugging-port=0"];
  // Chromium does not start under root with its sandbox.
  if (process.getuid?.() === 0) args.push("--no-sandbox");
  const browser = spawn(program, [...args, `--user-data-dir=${profile}`, "about:blank"], {
    stdio: "ignore",
    // Chromium would otherwise leave files in the user's folders.
    env: { ...process.env, ...env, XDG_CONFIG_HOME: profile, XDG_CACHE_HOME: profile },
  });
  try {
    const found = await waitForDevTools(browser, profile, signal);
    return { ...found, [Symbol.asyncDispose]: () => stopBrowser(browser, profile) };
  } catch (error) {
    await stopBrowser(browser, profile);
    throw error;
  }
}

/** Waits until a started browser answers, and returns its DevTools port and page. */
async function waitForDevTools(
  browser: ChildProcess,
  profile: string,
  signal: AbortSignal,
): Promise<{ port: string; page: string }> {
  let failure: Error | undefined;
  browser.once("error", (error) => (failure = error));
  for (;;) {
    if (failure) throw failure;
    if (browser.exitCode !== null) throw new Error(`it ended with code ${browser.exitCode}`);
    const port = readPort(profile);
    if (port !== undefined) {
      const answer = await fetch(`http://127.0.0.1:${port}/json/list`, { signal });
      const [target] = targetsSchema.parse(await answer.json());
      if (target) return { port, page: target.webSocketDebuggerUrl };
    }
    await sleep(POLL_INTERVAL_MS, undefined, { signal });
  }
}

/** Port in the file that Chromium writes; undefined until the file is complete. */
function readPort(profile: string): string | undefined {
  try {
    return /^(\d+)\n/.exec(readFileSync(path.join(profile, "DevToolsActivePort"), "utf8"))?.[1];
  } catch {
    return undefined; // not there yet
  }
}

async function stopBrowser(browser: ChildProcess, profile: string): Promise<void> {
  if (browser.pid !== undefined && browser.exitCode === null && browser.signalCode === null) {
    const exited = once(browser, "exit");
    browser.kill("SIGKILL");
    await exited;
  }
  rmSync(profile, { recursive: true, force: true, maxRetries: 10 });
}

/** Names of Chromium and browsers based on it. */
const PROGRAM_NAMES = [
  "chromium",
  "chromium-browser",
  "google-chrome",
  "google-chrome-stable",
  "microsoft-edge",
];

const MAC_APPS = [
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
  "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
];

const WINDOWS_PROGRAMS = ["Google/Chrome/Application/chrome.exe", "Microsoft/Edge/Application/msedge.exe"];

/** Path of an installed Chromium, Chrome or Edge; the variable CHROMIUM names another. */
export function findChromium(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const { CHROMIUM: named } = env;
  if (named) return isProgram(named) ? named : undefined;
  return findInPath(PROGRAM_NAMES, env) ?? [...MAC_APPS, ...windowsPaths(env)].find(isProgram);
}

function windowsPaths(env: NodeJS.ProcessEnv): string[] {
  const folders = [env["PROGRAMFILES"], env["PROGRAMFILES(X86)"], env["LOCALAPPDATA"]];
  return folders.flatMap((folder) =>
    folder === undefined ? [] : WINDOWS_PROGRAMS.map((program) => path.join(folder, program)),
  );
}
