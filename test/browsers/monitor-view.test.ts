import { readFileSync } from "node:fs";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findChromium } from "../support/launch-chromium.ts";
import { BrowserPage } from "../support/browser-page.ts";
import { enginePids } from "../support/daemon-children.ts";
import { HAS_ITS_COLOR, movePointer, valueOf } from "../support/monitor-page.ts";
import { PageActions } from "../support/page-actions.ts";
import { need } from "../support/need.ts";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";

const chromium = findChromium();
const CHROMIUM = need("Chromium", chromium !== undefined);

const MODEL = "daybreak-mini";
const AXE = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");

/** Matches the requests of the monitor's polls. */
const POLL_REQUESTS = /\/metrics$|\/api\/system\/(activity|status)/;

describe.skipIf(CHROMIUM.isMissing)(`the monitor${CHROMIUM.note}`, () => {
  let daemon: TestDaemon;
  let page: BrowserPage;
  let on: PageActions;
  beforeAll(async () => {
    daemon = await startDaemon();
    page = await BrowserPage.open(chromium!, `${daemon.url}/ui/`);
    on = new PageActions(page);
    await on.ready();
  });
  afterAll(async () => {
    await page?.[Symbol.asyncDispose]();
    await daemon?.stop();
  });

  /** Sends a request from outside the page. */
  const generate = async (body: object): Promise<Response> =>
    await fetch(`${daemon.url}/api/generate`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: MODEL, ...body }),
    });
  const pollCount = (): number => page.requests.filter((url) => POLL_REQUESTS.test(url)).length;
  const textHas = (selector: string, text: string) =>
    on.until(
      `document.querySelector(${JSON.stringify(selector)})?.textContent.includes(${JSON.stringify(text)})`,
    );
  const rows = async (): Promise<string[]> => {
    const cells = await page.evaluate(
      `[...document.querySelectorAll("#requests tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent).join(" | "))`,
    );
    return Array.isArray(cells) ? cells.map(String) : [];
  };

  test("lists a request of the chat with its model, tokens and times", async () => {
    await on.set({ temperature: "0", max_tokens: "12" });
    await on.ask("What is Daybreak?");
    await on.enter("#/monitor");
    await textHas("#watching", "Live");
    await textHas("#requests tbody", "/api/chat");
    const row = (await rows()).find((each) => each.includes("/api/chat"));
    expect(row).toMatch(
      /^\d\d:\d\d:\d\d \| POST \/api\/chat \| 200 \| daybreak-mini \| \d+.* → 12 \| [\d.]+ m?s \| [\d.]+ \| [\d.]+ m?s$/,
    );
    expect(await on.textOf("#problem")).toBe("");
  });

  test("has charts whose legends follow a running generation", async () => {
    expect(await on.count(".chart canvas")).toBe(5);
    await on.until(`${valueOf("Requests", "running")} === "0"`);
    await on.until(`/^\\d/.test(${valueOf("Tokens generated per second", "generated")})`);
    const client = new AbortController();
    const endless = fetch(`${daemon.url}/api/generate`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: MODEL, prompt: "Once", max_tokens: 1900, temperature: 2, stream: true }),
      signal: client.signal,
    });
    await on.until(`Number(${valueOf("Tokens generated per second", "generated")}) > 0`);
    client.abort();
    await endless.then((answer) => answer.text()).catch(() => undefined);
    await on.until(`${valueOf("Requests", "running")} === "0"`);
    expect(await page.evaluate(valueOf("Memory", "daemon"))).toMatch(/^[\d.]+ [MG]B$/);
    expect(await page.evaluate(valueOf("Memory", MODEL))).toMatch(/^[\d.]+ [MG]B$/);
    expect(await page.evaluate(valueOf("Time to first token", "half"))).toMatch(/^[\d.]+ m?s$/);
    const drawn = `[...document.querySelectorAll(".chart canvas")].every((canvas) =>
      canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some((byte) => byte > 0))`;
    expect(await page.evaluate(drawn)).toBe(true);
  });

  test("shows the engines, the GPU and the sandbox", async () => {
    await textHas("#engines", MODEL);
    expect(await on.textOf("#engines")).toMatch(/Requests0 of \d+Memory[\d.]+ [MG]BContext2,048 tokens/);
    await on.until(`/Idlefor \\d/.test(document.querySelector("#engines").textContent)`);
    expect(await on.textOf("#gpu")).toContain("set gpu.mode to auto to use one");
    expect(await on.textOf("#sandbox")).toContain("configured: auto");
    expect(await on.textOf("#daemon")).toMatch(/llama\.cpp b\d+.*requests/);
    expect(await on.count("#fleet")).toBe(0);
  });

  test("reports a crashed engine immediately with the reason, and its restart", async () => {
    expect(await on.textOf("#incidents")).toContain("Nothing has crashed");
    for (const pid of enginePids(daemon.pid)) process.kill(pid, "SIGKILL");
    await textHas("#incidents", `${MODEL} crashed: The engine of "${MODEL}" ended: `);
    await on.until(`!document.querySelector("#engines").textContent.includes("${MODEL}")`);
    expect((await generate({ prompt: "Hi", max_tokens: 2 })).status).toBe(200);
    await textHas("#incidents", `${MODEL} started again after a crash: `);
    expect(await on.textOf("#incidents")).toMatch(/started again after a crash: \w+/);
  });

  test("filters requests by path and model, and marks failed ones", async () => {
    expect((await generate({ model: "no-such-model", prompt: "Hi" })).status).toBe(404);
    await textHas("#requests tbody", "model_not_found");
    expect(await on.textOf("#requests tbody tr.bad")).toContain("failed");
    await on.type("#request-kind", "failed");
    await on.until(
      `document.querySelectorAll("#requests tbody tr").length === document.querySelectorAll("#requests tr.bad").length`,
    );
    await on.type("#request-kind", "work");
    expect((await rows()).some((row) => row.includes("/metrics"))).toBe(false);
    await on.type("#request-kind", "all");
    await textHas("#requests tbody", "/metrics");
    await on.type("#request-filter", "generate");
    await on.until(
      `[...document.querySelectorAll("#requests tbody tr")].every((row) => row.textContent.includes("/api/generate"))`,
    );
    await on.type("#request-filter", MODEL);
    await textHas("#requests tbody", "/api/chat");
    await on.type("#request-filter", "");
    await on.type("#request-kind", "work");
  });

  test("filters the log by level and words, and shows no new records while it is paused", async () => {
    await textHas("#logs", "model-loaded");
    await on.type("#log-level", "warn");
    await on.until(
      `![...document.querySelectorAll("#logs .level")].some((each) => each.textContent === "info")`,
    );
    expect(await on.textOf("#logs")).toContain("engine-restarted");
    await on.type("#log-level", "info");
    await on.type("#log-filter", "engine-restarted");
    await on.until(`document.querySelectorAll("#logs li").length === 1`);
    await on.type("#log-filter", "");
    await on.click("#log-pause");
    const before = await on.textOf("#logs");
    await fetch(`${daemon.url}/api/models/${MODEL}/unload`, { method: "POST" });
    await textHas("#log-pause", "new");
    expect(await on.textOf("#logs")).toBe(before);
    await on.click("#log-pause");
    await textHas("#logs", "model-unloaded");
  });

  test.each([360, 390, 1400])("needs no scrolling sideways at %i pixels", async (width) => {
    await page.resize(width, 800);
    await on.until(
      `[...document.querySelectorAll(".chart canvas")].every((each) => each.clientWidth < ${width})`,
    );
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
    const wide = await page.evaluate(`[...document.querySelectorAll("#monitor, #monitor *")]
      .filter((each) => each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).overflowX !== "visible" && each.clientWidth > 1)
      .map((each) => each.id || each.className)`);
    expect(wide).toEqual([]);
  });

  test.each([
    ["light", 1200],
    ["dark", 1200],
    ["dark", 390],
  ])("has no accessibility violations in the %s scheme at %i pixels", async (scheme, width) => {
    await page.resize(width, 900);
    await page.prefer(scheme);
    await page.evaluate(
      `document.querySelectorAll("#monitor details").forEach((each) => (each.open = true))`,
    );
    await page.evaluate(AXE);
    const violations = await page.evaluate(`axe.run().then(({ violations }) =>
      violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html }) => html).join(" ")))`);
    expect(violations).toEqual([]);
  });

  test.each(["light", "dark"])("draws the charts in the colors of the %s scheme", async (scheme) => {
    await page.prefer(scheme);
    await on.until(HAS_ITS_COLOR);
    expect(await page.evaluate(`matchMedia("(prefers-color-scheme: ${scheme})").matches`)).toBe(true);
  });

  test("shows the values under the pointer in all charts at the same time", async () => {
    await page.evaluate(movePointer("mouseenter"));
    await page.evaluate(movePointer("mousemove"));
    await on.until(`document.querySelectorAll(".chart figcaption small").length === 5`);
    expect(await on.textOf(".chart figcaption small")).toMatch(/^\d\d:\d\d:\d\d$/);
    await page.evaluate(movePointer("mouseleave"));
    await on.until(`document.querySelectorAll(".chart figcaption small").length === 0`);
  });

  test("hides crashes that were marked as seen", async () => {
    await on.press("#monitor", "Mark as seen");
    await textHas("#incidents", "Nothing has crashed");
    expect(await on.textOf("#events")).toContain(`${MODEL} crashed: `);
  });

  test("lists each chat over a WebSocket as a request", async () => {
    const socket = new WebSocket(`${daemon.url.replace("http", "ws")}/ws/chat`);
    const over = new Promise<void>((resolve) => {
      socket.addEventListener("message", ({ data }) => {
        if (String(data).includes('"done"')) resolve();
      });
    });
    await once(socket, "open");
    const messages = [{ role: "user", content: "Hi" }];
    socket.send(JSON.stringify({ type: "chat", id: "one", model: MODEL, messages, max_tokens: 5 }));
    await over;
    socket.close();
    await textHas("#requests tbody", "WS /ws/chat");
    const row = (await rows()).find((each) => each.includes("/ws/chat"));
    expect(row).toMatch(/ WS \/ws\/chat \| 101 \| daybreak-mini \| \d+.* → 5 \| /);
  });

  test("stops polling while the page is hidden, and when another view is opened", async () => {
    const hide = (isHidden: boolean) =>
      page.evaluate(`Object.defineProperty(document, "hidden", { value: ${isHidden}, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"))`);
    await hide(true);
    const whileHidden = pollCount();
    // The page itself polls the models every five seconds, also while it is hidden.
    const asked = page.requests.length;
    while (page.requests.length === asked) await page.evaluate("new Promise(requestAnimationFrame)");
    expect(pollCount()).toBe(whileHidden);
    await hide(false);
    await textHas("#watching", "Live");
    await on.enter("");
    const afterLeaving = pollCount();
    await on.ask("What is Daybreak?");
    const since = page.requests.length;
    while (page.requests.length === since) await page.evaluate("new Promise(requestAnimationFrame)");
    expect(pollCount()).toBe(afterLeaving);
    await on.enter("#/monitor");
    await textHas("#watching", "Live");
  });

  test("violates no rule of its Content-Security-Policy", () => {
    expect(page.problems.filter((problem) => !problem.includes("404"))).toEqual([]);
  });

  test("reports that the daemon is unreachable, and continues with a new one at its address", async () => {
    const port = new URL(daemon.url).port;
    await daemon.stop();
    await textHas("#watching", "cannot be reached");
    daemon = await startDaemon({ args: ["--http-port", port] });
    await textHas("#watching", "Live");
    expect((await generate({ prompt: "Hello again", max_tokens: 3 })).status).toBe(200);
    await on.type("#request-filter", "generate");
    await on.until(`document.querySelector("#requests tbody tr")?.textContent.includes("→ 3")`);
  });
});
