import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { z } from "zod";
import { launchChromium, type LaunchOptions } from "./launch-chromium.ts";

const POLL_MS = 50;

/** Messages of the DevTools protocol, as far as they are used here. */
const messageSchema = z.object({
  id: z.int().optional(),
  method: z.string().optional(),
  /** Session of the worker that sends it; absent: the page. */
  sessionId: z.string().optional(),
  result: z
    .object({
      result: z.object({ value: z.unknown().optional(), objectId: z.string().optional() }).optional(),
      exceptionDetails: z.unknown().optional(),
      /** Base64. */
      data: z.string().optional(),
    })
    .optional(),
  params: z
    .object({
      request: z.object({ url: z.string() }).optional(),
      entry: z.object({ level: z.string(), text: z.string() }).optional(),
      exceptionDetails: z.unknown().optional(),
      sessionId: z.string().optional(),
      targetInfo: z.object({ type: z.string(), url: z.string() }).optional(),
    })
    .optional(),
});
type Message = z.output<typeof messageSchema>;

/** A page in a real browser, led by the browser's DevTools protocol. */
export class BrowserPage implements AsyncDisposable {
  /** Addresses that the page has asked for, in order. */
  readonly requests: string[] = [];
  /**
   * Errors of the page: requests that the browser has refused, for example by its Content-Security-Policy, and uncaught
   * exceptions.
   */
  readonly problems: string[] = [];
  /** Addresses of the workers that run, by their sessions. */
  readonly #workers = new Map<string, string>();
  readonly #socket: WebSocket;
  readonly #close: () => Promise<void>;
  /** Port of the browser's DevTools. */
  readonly #port: string;
  readonly #answers = new Map<number, (answer: Message) => void>();

  private constructor(socket: WebSocket, port: string, close: () => Promise<void>) {
    this.#port = port;
    this.#socket = socket;
    this.#close = close;
    socket.on("message", (data: Buffer) => this.#receive(messageSchema.parse(JSON.parse(data.toString()))));
  }

  /** @param launch flags and environment of the browser */
  static async open(
    chromium: string,
    url: string,
    launch: Partial<LaunchOptions> = {},
  ): Promise<BrowserPage> {
    const browser = await launchChromium(chromium, { signal: new AbortController().signal, ...launch });
    const close = async (): Promise<void> => browser[Symbol.asyncDispose]();
    try {
      return await BrowserPage.#lead(browser.page, browser.port, url, close);
    } catch (error) {
      await close();
      throw error;
    }
  }

  static async #lead(
    address: string,
    port: string,
    url: string,
    close: () => Promise<void>,
  ): Promise<BrowserPage> {
    const socket = new WebSocket(address);
    await once(socket, "open");
    const page = new BrowserPage(socket, port, close);
    for (const domain of ["Network", "Log", "Runtime", "Page"]) await page.#ask(`${domain}.enable`);
    await page.#attachToWorkers();
    await page.#ask("Page.navigate", { url });
    return page;
  }

  /** Another tab of the same browser. */
  async openTab(url: string): Promise<BrowserPage> {
    const devTools = `http://127.0.0.1:${this.#port}/json`;
    const answer = await fetch(`${devTools}/new?about:blank`, { method: "PUT" });
    const { id, webSocketDebuggerUrl } = z
      .object({ id: z.string(), webSocketDebuggerUrl: z.string() })
      .parse(await answer.json());
    return await BrowserPage.#lead(webSocketDebuggerUrl, this.#port, url, async () => {
      await fetch(`${devTools}/close/${id}`);
    });
  }

  /** The value of an expression in the page, or what it promises. */
  async evaluate(expression: string): Promise<unknown> {
    const { result } = await this.#ask("Runtime.evaluate", {
      expression,
      awaitPromise: true,
      returnByValue: true,
    });
    if (result?.exceptionDetails !== undefined) throw new Error(JSON.stringify(result.exceptionDetails));
    return result?.result?.value;
  }

  /** Resolves when an expression in the page is true; the deadline is the test's. */
  async until(expression: string): Promise<void> {
    while ((await this.evaluate(`Boolean(${expression})`)) !== true) await sleep(POLL_MS);
  }

  /** Runs an expression in a worker whose address begins so; workers of workers count. */
  async evaluateInWorker(address: string, expression: string): Promise<void> {
    const [session] = [...this.#workers].find(([, url]) => url.startsWith(address)) ?? [];
    if (session === undefined) throw new Error(`no worker is at ${address}`);
    await this.#ask("Runtime.evaluate", { expression }, session);
  }

  /** Gives the page another size, in CSS pixels. */
  async resize(width: number, height: number): Promise<void> {
    await this.#ask("Emulation.setDeviceMetricsOverride", {
      width,
      height,
      deviceScaleFactor: 1,
      mobile: false,
    });
  }

  /** Takes a PNG of the page. */
  async screenshot(): Promise<Buffer> {
    const { result } = await this.#ask("Page.captureScreenshot", { format: "png" });
    return Buffer.from(result?.data ?? "", "base64");
  }

  /** Tells the page that its user prefers "light" or "dark". */
  async prefer(scheme: string): Promise<void> {
    await this.#ask("Emulation.setEmulatedMedia", {
      features: [{ name: "prefers-color-scheme", value: scheme }],
    });
  }

  /** Ends the process in which the browser runs its GPU. */
  async crashGpu(): Promise<void> {
    const { webSocketDebuggerUrl } = z
      .object({ webSocketDebuggerUrl: z.string() })
      .parse(await (await fetch(`http://127.0.0.1:${this.#port}/json/version`)).json());
    const browser = new WebSocket(webSocketDebuggerUrl);
    await once(browser, "open");
    browser.send(JSON.stringify({ id: 1, method: "Browser.crashGpuProcess" }));
    await once(browser, "message");
    browser.close();
  }

  /** How many workers run whose address ends so. */
  workers(address: string): number {
    return [...this.#workers.values()].filter((url) => url.endsWith(address)).length;
  }

  /** Chooses a file in an input, as a person does. */
  async chooseFile(input: string, file: string): Promise<void> {
    const { result } = await this.#ask("Runtime.evaluate", {
      expression: `document.querySelector(${JSON.stringify(input)})`,
    });
    await this.#ask("DOM.setFileInputFiles", { objectId: result?.result?.objectId, files: [file] });
  }

  /** Sets how many bytes an origin may store; absent: as many as the browser gives. */
  async overrideQuota(origin: string, quotaSize?: number): Promise<void> {
    await this.#ask("Storage.overrideQuotaForOrigin", { origin, quotaSize });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.terminate();
    await this.#close();
  }

  async #attachToWorkers(session?: string): Promise<void> {
    const how = { autoAttach: true, waitForDebuggerOnStart: false, flatten: true };
    await this.#ask("Target.setAutoAttach", how, session);
  }

  async #ask(method: string, params: object = {}, sessionId?: string): Promise<Message> {
    const id = this.#answers.size + 1;
    const { promise, resolve } = Promise.withResolvers<Message>();
    this.#answers.set(id, resolve);
    this.#socket.send(JSON.stringify({ id, method, params, sessionId }));
    return await promise;
  }

  #receive(message: Message): void {
    const { id, method, params } = message;
    if (id !== undefined) this.#answers.get(id)?.(message);
    else if (
      method === "Target.attachedToTarget" &&
      params?.sessionId &&
      params.targetInfo?.type === "worker"
    ) {
      this.#workers.set(params.sessionId, params.targetInfo.url);
      void this.#attachToWorkers(params.sessionId);
    } else if (method === "Target.detachedFromTarget") {
      this.#workers.delete(params?.sessionId ?? "");
    } else if (method === "Network.requestWillBeSent" && params?.request)
      this.requests.push(params.request.url);
    else if (method === "Log.entryAdded" && params?.entry?.level === "error")
      this.problems.push(params.entry.text);
    else if (method === "Runtime.exceptionThrown")
      this.problems.push(JSON.stringify(params?.exceptionDetails));
  }
}
