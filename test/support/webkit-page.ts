import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, globSync } from "node:fs";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";

const DRIVER = "/usr/bin/WebKitWebDriver";
const DISPLAY_SERVER = "/usr/bin/Xvfb";

/** Has the browser, in folders whose names depend on the machine and the release of Debian. */
const LIBRARIES = "/usr/lib";

const POLL_MS = 50;

/** The browser of WebKitGTK, where it can be led and shown somewhere. */
export function findWebKit(): string | undefined {
  if (!existsSync(DRIVER) || !existsSync(DISPLAY_SERVER)) return undefined;
  return globSync(`${LIBRARIES}/*/webkit*gtk-*/MiniBrowser`)[0];
}

const answerSchema = z.object({ value: z.unknown() });
const sessionSchema = z.object({ sessionId: z.string() });
const failureSchema = z.object({ error: z.string(), message: z.string() });

/** A page in a real WebKit, the engine of Safari, led by WebDriver. */
export class WebKitPage implements AsyncDisposable {
  readonly #processes: readonly ChildProcess[];
  readonly #address: string;

  private constructor(processes: readonly ChildProcess[], address: string) {
    this.#processes = processes;
    this.#address = address;
  }

  static async open(browser: string, url: string): Promise<WebKitPage> {
    const display = spawn(DISPLAY_SERVER, ["-displayfd", "3", "-screen", "0", "800x600x24"], {
      stdio: ["ignore", "ignore", "ignore", "pipe"],
    });
    const [number] = await once(display.stdio[3]!, "data");
    const port = await freePort();
    const driver = spawn(DRIVER, [`--port=${port}`], {
      stdio: "ignore",
      env: {
        ...process.env,
        DISPLAY: `:${String(number).trim()}`,
        // Off in this port of WebKit, on in Safari.
        JSC_useSharedArrayBuffer: "1",
        JSC_useWasmRelaxedSIMD: "1",
        // Its own sandbox needs rights that a container does not have.
        WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS: "1",
      },
    });
    const address = `http://127.0.0.1:${port}`;
    while (!(await fetch(`${address}/status`).catch(() => undefined))?.ok) await sleep(POLL_MS);
    const capabilities = { "webkitgtk:browserOptions": { binary: browser, args: ["--automation"] } };
    const session = sessionSchema.parse(
      await ask(`${address}/session`, { capabilities: { alwaysMatch: capabilities } }),
    );
    const page = new WebKitPage([driver, display], `${address}/session/${session.sessionId}`);
    await ask(`${page.#address}/timeouts`, { script: 120_000 });
    await ask(`${page.#address}/url`, { url });
    return page;
  }

  /** The value of an expression in the page, or what it promises; it must fit JSON. */
  async evaluate(expression: string): Promise<unknown> {
    const script = `const done = arguments[0];
      Promise.resolve(${expression}).then(
        (value) => done({ value: JSON.stringify(value ?? null) }),
        (error) => done({ problem: String(error?.message ?? error) }),
      );`;
    const { value, problem } = z
      .object({ value: z.string().optional(), problem: z.string().optional() })
      .parse(await ask(`${this.#address}/execute/async`, { script, args: [] }));
    if (problem !== undefined) throw new Error(problem);
    return JSON.parse(value ?? "null");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await fetch(this.#address, { method: "DELETE" }).catch(() => undefined);
    for (const child of this.#processes) {
      child.kill("SIGKILL");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    }
  }
}

async function ask(address: string, body: object): Promise<unknown> {
  const answer = await fetch(address, { method: "POST", body: JSON.stringify(body) });
  const { value } = answerSchema.parse(await answer.json());
  const failure = failureSchema.safeParse(value).data;
  if (failure) throw new Error(`${failure.error}: ${failure.message}`);
  return value;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}
