import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { WebSocket } from "ws";
import { z } from "zod";

/** Longest time for an order, such as a generation in the page, in milliseconds. */
const LONGEST_MS = 120_000;
const PLACES = ["/usr/bin/firefox-esr", "/usr/bin/firefox"];

/** Answers of WebDriver BiDi, as far as they are used here. */
const answerSchema = z.object({
  id: z.int().nullish(),
  error: z.string().optional(),
  message: z.string().optional(),
  result: z
    .object({
      contexts: z.array(z.object({ context: z.string() })).optional(),
      context: z.string().optional(),
      result: z.object({ value: z.unknown().optional() }).optional(),
      exceptionDetails: z.object({ text: z.string() }).optional(),
    })
    .optional(),
});
type Answer = z.output<typeof answerSchema>;

/** Path of an installed Firefox, if there is one; FIREFOX names another. */
export function findFirefox(): string | undefined {
  return [process.env["FIREFOX"], ...PLACES].find((place) => place !== undefined && existsSync(place));
}

interface FirefoxTab {
  /** As {@link FirefoxPage.evaluate}. */
  evaluate(expression: string): Promise<unknown>;
  close(): Promise<void>;
}

/** A page in a real Firefox, led by WebDriver BiDi. */
export class FirefoxPage implements AsyncDisposable {
  readonly #browser: ChildProcess;
  readonly #profile: string;
  readonly #socket: WebSocket;
  readonly #answers = new Map<number, (answer: Answer) => void>();
  #context = "";
  #lastId = 0;

  private constructor(browser: ChildProcess, profile: string, socket: WebSocket) {
    this.#browser = browser;
    this.#profile = profile;
    this.#socket = socket;
    socket.on("message", (data: Buffer) => {
      const answer = answerSchema.parse(JSON.parse(data.toString()));
      if (answer.id != null) this.#answers.get(answer.id)?.(answer);
    });
  }

  static async open(firefox: string, url: string): Promise<FirefoxPage> {
    const profile = mkdtempSync(path.join(os.tmpdir(), "daybreak-firefox-"));
    const args = ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port=0"];
    const browser = spawn(firefox, args, {
      stdio: ["ignore", "ignore", "pipe"],
      env: { ...process.env, HOME: profile },
    });
    const socket = new WebSocket(`${await addressOf(browser)}/session`);
    await once(socket, "open");
    const page = new FirefoxPage(browser, profile, socket);
    await page.#ask("session.new", { capabilities: {} });
    const { result } = await page.#ask("browsingContext.getTree", {});
    page.#context = result!.contexts![0]!.context;
    await page.#ask("browsingContext.navigate", { context: page.#context, url, wait: "complete" });
    return page;
  }

  /** Another tab of the same browser, led through the first one's connection. */
  async openTab(url: string): Promise<FirefoxTab> {
    const { result } = await this.#ask("browsingContext.create", { type: "tab" });
    const context = result!.context!;
    await this.#ask("browsingContext.navigate", { context, url, wait: "complete" });
    return {
      evaluate: async (expression) => await this.#evaluateIn(context, expression),
      close: async () => void (await this.#ask("browsingContext.close", { context })),
    };
  }

  /** The value of an expression in the page, or what it promises; it must fit JSON. */
  async evaluate(expression: string): Promise<unknown> {
    return await this.#evaluateIn(this.#context, expression);
  }

  async #evaluateIn(context: string, expression: string): Promise<unknown> {
    const { result } = await this.#ask("script.evaluate", {
      expression: `Promise.resolve(${expression}).then((value) => JSON.stringify(value ?? null))`,
      target: { context },
      awaitPromise: true,
    });
    if (result?.exceptionDetails) throw new Error(result.exceptionDetails.text);
    return JSON.parse(String(result?.result?.value));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.terminate();
    const exited = once(this.#browser, "exit");
    this.#browser.kill("SIGKILL");
    await exited;
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 10 });
  }

  async #ask(method: string, params: object): Promise<Answer> {
    const id = ++this.#lastId;
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    this.#answers.set(id, resolve);
    this.#socket.send(JSON.stringify({ id, method, params }));
    const late = setTimeout(() => reject(new Error(`Firefox does not answer ${method}`)), LONGEST_MS);
    const answer = await promise.finally(() => clearTimeout(late));
    if (answer.error !== undefined) throw new Error(`${method}: ${answer.error}: ${answer.message}`);
    return answer;
  }
}

/** Where a Firefox that has just been started takes orders. */
async function addressOf(browser: ChildProcess): Promise<string> {
  for await (const line of createInterface({ input: browser.stderr! })) {
    const address = /WebDriver BiDi listening on (ws:\S+)/.exec(line)?.[1];
    if (address !== undefined) return address;
  }
  throw new Error("Firefox ended before it could be led");
}
