import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { findChromium } from "../support/launch-chromium.ts";
import { BrowserPage } from "../support/browser-page.ts";
import { need } from "../support/need.ts";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";

const chromium = findChromium();
const CHROMIUM = need("Chromium", chromium !== undefined);

/** Requests long answers, one after the other, until one fails. Resolves when the first has begun. */
async function askUntilError(tab: BrowserPage): Promise<void> {
  await tab.evaluate(`(() => {
    globalThis.pieces = 0;
    const format = { type: "array", items: { type: "string", enum: ["again"] }, minItems: 400, maxItems: 400 };
    globalThis.long = (async () => {
      for (;;) {
        const answer = await ask(1500, { format, onText: () => (pieces += 1) });
        if (!answer.startsWith("[")) return answer;
      }
    })();
  })()`);
  await tab.until("pieces > 3");
}

describe.skipIf(CHROMIUM.isMissing)(`an engine shared by several tabs${CHROMIUM.note}`, () => {
  let daemon: TestDaemon;
  let browser: BrowserPage;
  let first: BrowserPage;
  let second: BrowserPage;
  beforeAll(async () => {
    daemon = await startDaemon();
    browser = await BrowserPage.open(chromium!, "about:blank");
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await daemon?.stop();
  });
  beforeEach(async () => {
    first = await openTab();
    second = await openTab();
  });
  afterEach(async () => {
    await first[Symbol.asyncDispose]();
    await second[Symbol.asyncDispose]();
  });

  async function openTab(): Promise<BrowserPage> {
    const tab = await browser.openTab(`${daemon.url}/ui/`);
    await tab.until("document.readyState === 'complete' && location.pathname === '/ui/'");
    await tab.evaluate(`(async () => {
      const { createEngine } = await import("/browser/daybreak.js");
      const model = await (await fetch("/api/models/daybreak-mini/files/0")).blob();
      globalThis.engine = await createEngine({ model, name: "daybreak-mini", share: true });
      globalThis.ask = (max_tokens, options = {}) =>
        engine.chat([{ role: "user", content: "What is Daybreak?" }], { temperature: 0, max_tokens, ...options })
          .then(({ message }) => message.content, ({ code }) => code);
    })()`);
    return tab;
  }

  test("is loaded once, and gives all tabs the same answer", async () => {
    const answers = await Promise.all([first, second].map((tab) => tab.evaluate("ask(16)")));
    expect(answers[0]).toMatch(/^Daybreak/);
    expect(answers[1]).toBe(answers[0]);
    expect(first.workers("engine-worker.js") + second.workers("engine-worker.js")).toBe(1);
  });

  test("is restarted by another tab when the one that runs it is closed", async () => {
    await askUntilError(second);
    await first[Symbol.asyncDispose]();
    expect(await second.evaluate("long")).toBe("engine_crashed");
    expect(await second.evaluate("ask(8)")).toMatch(/^Daybreak/);
    expect(second.workers("engine-worker.js")).toBe(1);
  });

  test("still serves the other tabs when one tab closes its engine", async () => {
    await first.evaluate("engine.close()");
    expect(await first.evaluate("ask(4)")).toBe("model_not_loaded");
    expect(await second.evaluate("ask(4)")).toMatch(/^(Daybreak|engine_crashed)/);
    expect(await second.evaluate("ask(4)")).toMatch(/^Daybreak/);
  });
});
