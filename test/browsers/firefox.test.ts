import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compareResults } from "../../src/experiments/experiments.ts";
import { FirefoxPage, findFirefox } from "../support/firefox-page.ts";
import { need } from "../support/need.ts";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";
import { tinyPng } from "../support/tiny-png.ts";
import { type ExperimentResult, experimentResultSchema } from "../../src/api/wire/native.ts";

const firefox = findFirefox();
const FIREFOX = need("Firefox", firefox !== undefined);

const IMAGE = Buffer.from(tinyPng(64, 64)).toString("base64");
const SAME = { isSame: true, logprobDifference: 0 };

describe.skipIf(FIREFOX.isMissing)(`the engine in a page of Firefox${FIREFOX.note}`, () => {
  let page: FirefoxPage;
  let daemon: TestDaemon;
  beforeAll(async () => {
    daemon = await startDaemon({ args: ["--auto-load"] });
    page = await FirefoxPage.open(firefox!, `${daemon.url}/ui/`);
    await page.evaluate(`(async () => {
      const { createEngine, ModelStore } = await import("/browser/daybreak.js");
      const store = new ModelStore();
      globalThis.engines = {};
      globalThis.start = async (name, key, options = {}) => {
        await store.download(name);
        engines[key] = await createEngine({ ...(await store.open(name)), ...options });
        return engines[key].info.threads;
      };
      globalThis.ask = async (key, path, body) => {
        const headers = { "content-type": "application/json" };
        const answer = await engines[key].fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
        return await answer.json();
      };
    })()`);
  });
  afterAll(async () => {
    await page?.[Symbol.asyncDispose]();
    await daemon?.stop();
  });

  const start = (name: string, key: string, options: object = {}) =>
    page.evaluate(`start(${JSON.stringify(name)}, ${JSON.stringify(key)}, ${JSON.stringify(options)})`);
  const inPage = (key: string, path: string, body: object) =>
    page.evaluate(`ask(${JSON.stringify(key)}, ${JSON.stringify(path)}, ${JSON.stringify(body)})`);

  async function inDaemon(path: string, body: object): Promise<unknown> {
    const answer = await fetch(daemon.url + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return await answer.json();
  }

  /** Runs the same experiment in the page and in the daemon. */
  async function both(
    key: string,
    model: string,
    request: object,
  ): Promise<[ExperimentResult, ExperimentResult]> {
    const body = { model, max_tokens: 48, ...request };
    return [
      experimentResultSchema.parse(await inPage(key, "/api/experiment", body)),
      experimentResultSchema.parse(await inDaemon("/api/experiment", body)),
    ];
  }

  test.each([1, 2])(
    "generates on %i threads exactly the tokens and log-probabilities of the daemon",
    async (threads) => {
      const key = `chat-${threads}`;
      expect(await start("daybreak-mini", key, { threads })).toBe(threads);
      for (const sampling of [{ temperature: 0 }, { temperature: 1.1, seed: 11 }]) {
        const messages = [{ role: "user", content: "What is Daybreak?" }];
        const [here, there] = await both(key, "daybreak-mini", { messages, ...sampling });
        expect(here.machine).toContain("Firefox");
        expect(here.tokens.length).toBeGreaterThan(10);
        expect(compareResults(here, there)).toMatchObject(SAME);
      }
      await page.evaluate(`engines[${JSON.stringify(key)}].close()`);
    },
  );

  test("generates the same as the daemon with a LoRA adapter", async () => {
    await start("daybreak-mini-pirate", "pirate");
    const messages = [{ role: "user", content: "What is Daybreak?" }];
    const [here, there] = await both("pirate", "daybreak-mini-pirate", { messages, temperature: 0 });
    expect(compareResults(here, there)).toMatchObject(SAME);
    await page.evaluate("engines.pirate.close()");
  });

  test("generates the same as the daemon for an image", async () => {
    await start("daybreak-mini-vision", "vision");
    const messages = [{ role: "user", content: "What is in the image?", images: [IMAGE] }];
    const [here, there] = await both("vision", "daybreak-mini-vision", { messages, temperature: 0 });
    expect(compareResults(here, there)).toMatchObject(SAME);
    await page.evaluate("engines.vision.close()");
  });

  test("returns the same embeddings as the daemon", async () => {
    await start("daybreak-mini-embed", "embed");
    const body = { model: "daybreak-mini-embed", input: ["How do I load a model?", "Bread and butter"] };
    const here = await inPage("embed", "/api/embeddings", body);
    expect(here).toMatchObject({ dimensions: expect.any(Number) });
    expect(here).toEqual(await inDaemon("/api/embeddings", body));
    await page.evaluate("engines.embed.close()");
  });

  test("is shared by two tabs, and restarted by the second when the first is closed", async () => {
    // A separate browser for each try of this test, since Firefox sometimes stops opening tabs.
    await using browser = await FirefoxPage.open(firefox!, `${daemon.url}/ui/`);
    const tabs = [
      await browser.openTab(`${daemon.url}/ui/`),
      await browser.openTab(`${daemon.url}/ui/`),
    ] as const;
    for (const tab of tabs) {
      await tab.evaluate(`(async () => {
        const { createEngine, ModelStore } = await import("/browser/daybreak.js");
        const store = new ModelStore();
        await store.download("daybreak-mini");
        globalThis.engine = await createEngine({ ...(await store.open("daybreak-mini")), share: true });
        globalThis.ask = () => engine.chat([{ role: "user", content: "What is Daybreak?" }], { temperature: 0, max_tokens: 8 })
          .then(({ message }) => message.content, ({ code }) => code);
      })()`);
    }
    const [first, second] = tabs;
    const answer = await first.evaluate("ask()");
    expect(answer).toMatch(/^Daybreak/);
    expect(await second.evaluate("ask()")).toBe(answer);
    await first.close();
    // The first request may still have been sent to the closing tab.
    expect([answer, "engine_crashed"]).toContain(await second.evaluate("ask()"));
    expect(await second.evaluate("ask()")).toBe(answer);
    await second.close();
  });
});
