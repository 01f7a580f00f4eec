import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { z } from "zod";
import { type ExperimentResult, experimentResultSchema } from "../../api/native/experiment.ts";
import { toError } from "../../errors/to-error.ts";
import { CliError, EXIT } from "../cli-error.ts";
import type { CliIo } from "../cli-io.ts";
import { daemonAddress, httpAddress } from "../client/daemon-address.ts";
import type { DaemonClient } from "../client/daemon-client.ts";
import { findInPath, isProgram } from "../find-program.ts";
import type { ClientOptions } from "../options/common-options.ts";

/**
 * Runs an experiment in a headless Chromium, which loads the engine and the model from the daemon.
 * @throws CliError if no Chromium is installed, or the run fails
 */
export async function runInChromium(
  io: CliIo,
  client: DaemonClient,
  options: ClientOptions,
  { model, request }: { model: string; request: object },
): Promise<ExperimentResult> {
  const chromium = findChromium(io.env);
  if (chromium === undefined) {
    throw new CliError(
      EXIT.error,
      "no_browser",
      "Chromium, Chrome or Edge was not found. Install one, or name its program in the variable CHROMIUM.",
    );
  }
  const address = daemonAddress(io.env, options);
  const { apiKey } = address;
  const url = `${await httpAddress(client, address)}/ui/experiments/`;
  const headers: Record<string, string> = apiKey ? { authorization: `Bearer ${apiKey}` } : {};
  try {
    await using page = await ChromiumPage.open(chromium, url, { headers, signal: io.signal });
    const onAbort = (): void => void page[Symbol.asyncDispose]();
    io.signal.addEventListener("abort", onAbort, { once: true });
    const value = await page.evaluate(
      `import("/browser/experiments.js").then(({ runHere }) => runHere(${JSON.stringify(model)}, ${JSON.stringify(request)}))`,
    );
    io.signal.removeEventListener("abort", onAbort);
    return experimentResultSchema.parse(value);
  } catch (error) {
    io.signal.throwIfAborted();
    throw new CliError(
      EXIT.error,
      "browser_failed",
      `The experiment failed in ${chromium}, at ${url}: ${toError(error).message}`,
      error,
    );
  }
}

const POLL_INTERVAL_MS = 50;

const targetsSchema = z.array(z.object({ webSocketDebuggerUrl: z.string() }));

const cdpResponseSchema = z.object({
  id: z.int().optional(),
  error: z.object({ message: z.string() }).optional(),
  result: z
    .object({
      result: z.object({ value: z.unknown().optional() }).optional(),
      errorText: z.string().optional(),
      exceptionDetails: z
        .object({ exception: z.object({ description: z.string() }).optional(), text: z.string() })
        .optional(),
    })
    .optional(),
});
type CdpResponse = z.output<typeof cdpResponseSchema>;

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

/** Page of a separate Chromium. */
export class ChromiumPage implements AsyncDisposable {
  readonly #browser: Chromium;
  readonly #socket: WebSocket;
  readonly #pending = new Map<number, PromiseWithResolvers<CdpResponse>>();
  #lastId = 0;

  private constructor(browser: Chromium, socket: WebSocket) {
    this.#browser = browser;
    this.#socket = socket;
    socket.on("message", (data: Buffer) => {
      const answer = cdpResponseSchema.parse(JSON.parse(data.toString()));
      if (answer.id !== undefined) this.#pending.get(answer.id)?.resolve(answer);
    });
    socket.on("close", () => {
      for (const { reject } of this.#pending.values()) reject(new Error("the browser has ended"));
    });
  }

  /**
   * Opens a page.
   * @param headers sent with every request of the page
   * @throws Error when the browser does not start or the page cannot be reached
   */
  static async open(
    program: string,
    url: string,
    { headers = {}, signal }: { headers?: Readonly<Record<string, string>>; signal: AbortSignal },
  ): Promise<ChromiumPage> {
    const browser = await launchChromium(program, { signal });
    try {
      const socket = new WebSocket(browser.page);
      await once(socket, "open", { signal });
      const page = new ChromiumPage(browser, socket);
      await page.#send("Network.enable");
      await page.#send("Network.setExtraHTTPHeaders", { headers });
      await page.#send("Page.enable");
      const { result } = await page.#send("Page.navigate", { url });
      if (result?.errorText !== undefined) throw new Error(`${url}: ${result.errorText}`);
      return page;
    } catch (error) {
      await browser[Symbol.asyncDispose]();
      throw error;
    }
  }

  /**
   * Evaluates an expression in the page and awaits its promise.
   * @throws Error with the message of the page's exception
   */
  async evaluate(expression: string): Promise<unknown> {
    const { result } = await this.#send("Runtime.evaluate", {
      expression,
      awaitPromise: true,
      returnByValue: true,
    });
    const { exceptionDetails: thrown } = result ?? {};
    if (!thrown) return result?.result?.value;
    const [message = thrown.text] = (thrown.exception?.description ?? thrown.text).split("\n");
    throw new Error(message.replace(/^Error: /, ""));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.terminate();
    await this.#browser[Symbol.asyncDispose]();
  }

  async #send(method: string, params: object = {}): Promise<CdpResponse> {
    const id = ++this.#lastId;
    const pending = Promise.withResolvers<CdpResponse>();
    this.#pending.set(id, pending);
    this.#socket.send(JSON.stringify({ id, method, params }));
    try {
      const answer = await pending.promise;
      if (answer.error) throw new Error(answer.error.message);
      return answer;
    } finally {
      this.#pending.delete(id);
    }
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
