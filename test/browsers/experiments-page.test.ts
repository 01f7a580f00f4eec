import { readFileSync } from "node:fs";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { fromFragment, parseExperiment, toFragment } from "../../src/experiments/experiments.ts";
import { activeRequests } from "../support/active-requests.ts";
import { BrowserPage } from "../support/browser-page.ts";
import { findChromium } from "../support/launch-chromium.ts";
import { need } from "../support/need.ts";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";

const chromium = findChromium();
const CHROMIUM = need("Chromium", chromium !== undefined);

const EXAMPLE = readFileSync(new URL("../../configs/experiments/hello.json", import.meta.url), "utf8");

describe.skipIf(CHROMIUM.isMissing)(`the experiments page${CHROMIUM.note}`, () => {
  let page: BrowserPage;
  let daemon: TestDaemon;
  beforeAll(async () => {
    daemon = await startDaemon({ args: ["--auto-load"] });
    page = await BrowserPage.open(chromium!, `${daemon.url}/ui/experiments/`);
    await ready();
  });
  afterAll(async () => {
    await page?.[Symbol.asyncDispose]();
    await daemon?.stop();
  });
  beforeEach(async () => void (await page.evaluate(`document.getElementById("reset").click()`)));

  const ready = () => page.until(`document.getElementById("status")?.textContent === "Ready"`);
  const textOf = async (selector: string) =>
    String(
      await page.evaluate(
        `[...document.querySelectorAll(${JSON.stringify(selector)})].map((each) => each.textContent).join("\\n")`,
      ),
    );
  const click = (id: string) => page.evaluate(`document.getElementById(${JSON.stringify(id)}).click()`);
  const type = (id: string, text: string) =>
    page.evaluate(`(() => {
      const field = document.getElementById(${JSON.stringify(id)});
      field.value = ${JSON.stringify(text)};
      field.dispatchEvent(new Event("input", { bubbles: true }));
    })()`);
  /** Clicks a button and waits for this number of results. */
  async function run(button: string, results: number): Promise<void> {
    await click(button);
    await page.until(`document.querySelectorAll("#results .result").length === ${results}
      || document.getElementById("problem").textContent !== ""`);
    await ready();
    expect(await textOf("#problem")).toBe("");
  }

  test("gets exactly the same tokens and log-probabilities in the daemon and in the tab", async () => {
    await type("message", "What is Daybreak?");
    await type("temperature", "0.9");
    await type("seed", "3");
    await run("run-both", 2);
    expect(await textOf("#results h3")).toBe("the daemon\nthis tab");
    expect(await textOf(".same")).toMatch(
      /^Same as the daemon: \d+ tokens, ended by \w+, log-probabilities equal to the last bit\.$/,
    );
    const [here, there] = (await textOf(".tokens")).split("\n");
    expect(here).toBe(there);
    expect(here).not.toBe("");
    expect(await textOf("#rates tr:first-child")).toContain("the daemonthis tab");
  });

  test("shows the alternatives of a token when it is clicked", async () => {
    await type("message", "What is Daybreak?");
    await type("max_tokens", "4");
    await run("run-daemon", 1);
    await page.evaluate(`document.querySelectorAll(".token")[1].click()`);
    expect(await textOf("#alternatives h3")).toBe("Token 2");
    expect(await page.evaluate(`document.querySelectorAll("#alternatives tr").length`)).toBe(5);
    expect(await textOf("#alternatives .chosen")).toContain(
      JSON.stringify(await page.evaluate(`document.querySelectorAll(".token")[1].textContent`)),
    );
  });

  test("marks the first token that differs from the recorded result", async () => {
    const recorded = parseExperiment(EXAMPLE);
    const changed = { ...recorded, request: { ...recorded.request, temperature: 1.4 } };
    await page.evaluate(`location.hash = ${JSON.stringify(await toFragment(changed))}`);
    await page.until(`document.querySelectorAll("#results .result").length === 1`);
    await run("run-browser", 2);
    const position = Number(/ at token (\d+);/.exec(await textOf(".different"))?.[1]);
    expect(position).toBeGreaterThan(0);
    expect(
      await page.evaluate(`[...document.querySelectorAll(".result")[1].querySelectorAll(".token")]
        .findIndex((token) => token.classList.contains("difference"))`),
    ).toBe(position - 1);
  });

  test("opens and runs the experiment of a link, and creates a link to the same experiment", async () => {
    const fragment = await toFragment(parseExperiment(EXAMPLE));
    await page.evaluate(`location.hash = ${JSON.stringify(fragment)}`);
    await page.until(`document.querySelectorAll("#results .result").length === 1`);
    expect(await page.evaluate(`document.getElementById("message").value`)).toBe("What is Daybreak?");
    await run("run-both", 3);
    expect((await textOf(".same")).match(/^Same as the recorded result: 24 tokens/gm)).toHaveLength(2);
    await click("share");
    // Links of the page omit the field $schema.
    await page.until(`location.hash !== ${JSON.stringify(`#${fragment}`)}`);
    const shared = await fromFragment(String(await page.evaluate("location.hash.slice(1)")));
    const { $schema: _, ...example } = parseExperiment(EXAMPLE);
    expect(shared).toEqual(example);
  });

  test("sweeps over values and shows the results side by side", async () => {
    await type("message", "Tell me about models.");
    await type("sweep-values", "0, 0.8, 1.5");
    await run("sweep", 3);
    expect(await textOf("#results h3")).toBe("temperature 0\ntemperature 0.8\ntemperature 1.5");
  });

  test("keeps a result as the recorded one", async () => {
    await type("message", "What is Daybreak?");
    await run("run-daemon", 1);
    await page.evaluate(`document.querySelector(".result button").click()`);
    await run("run-daemon", 2);
    expect(await textOf("#results h3")).toBe("the recorded result\nthe daemon");
    expect(await textOf(".same")).toContain("Same as the recorded result");
  });

  test("reports the problem of an invalid request or link, and stays usable", async () => {
    await type("request", `{"messages": [], "seed": "x"}`);
    await click("run-daemon");
    await page.until(`document.getElementById("problem").textContent !== ""`);
    expect(await textOf("#problem")).toMatch(/^The request is wrong: messages: /);
    await page.evaluate(`location.hash = "AAAA"`);
    await page.until(
      `document.getElementById("problem").textContent.includes("does not contain an experiment")`,
    );
    await click("reset");
    await type("message", "What is Daybreak?");
    await run("run-daemon", 1);
  });

  test("reports an error if the tab should use a GPU and the browser has none", async () => {
    await type("message", "What is Daybreak?");
    await click("use-gpu");
    await click("run-browser");
    await page.until(`document.getElementById("problem").textContent !== ""`);
    expect(await textOf("#problem")).toMatch(/^This tab cannot use a GPU\. This browser has /);
  });

  test.each([360, 390, 1400])("needs no scrolling sideways at %i pixels", async (width) => {
    await page.resize(width, 800);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
  });

  test("opens the last question of a conversation in the chat", async () => {
    await page.evaluate(`location.href = "/ui/"`);
    await page.until(
      `location.pathname === "/ui/" && document.getElementById("prompt") && document.getElementById("model").value !== ""`,
    );
    await type("prompt", "Who are you?");
    await click("send");
    await page.until(`document.querySelector("#messages .summary") !== null`);
    await click("experiment");
    await page.until(`location.pathname === "/ui/experiments/"`);
    await ready();
    expect(await page.evaluate(`document.getElementById("message").value`)).toBe("Who are you?");
    await run("run-both", 2);
    expect(await textOf(".same")).toContain("Same as the daemon");
  });

  test("violates no rule of its Content-Security-Policy, and sends no requests to other hosts", () => {
    expect(page.requests.filter((url) => !url.startsWith(daemon.url) && !/^(blob|data):/.test(url))).toEqual(
      [],
    );
    expect(page.problems.filter((problem) => !problem.includes("404"))).toEqual([]);
  });
});

test.skipIf(CHROMIUM.isMissing)(
  `the experiments page stays usable if the daemon is killed during a run${CHROMIUM.note}`,
  async () => {
    let daemon = await startDaemon({ args: ["--auto-load"] });
    const { port } = new URL(daemon.url);
    const args = ["--auto-load", "--http-port", port];
    try {
      await using page = await BrowserPage.open(chromium!, `${daemon.url}/ui/experiments/`);
      const ready = `document.getElementById("status")?.textContent === "Ready"`;
      await page.until(ready);
      const run = async (button: string, request: object): Promise<void> => {
        await page.evaluate(`(() => {
        document.getElementById("reset").click();
        const field = document.getElementById("request");
        field.value = ${JSON.stringify(JSON.stringify(request))};
        field.dispatchEvent(new Event("input", { bubbles: true }));
        document.getElementById("${button}").click();
      })()`);
      };
      const ended = async (): Promise<string> => {
        await page.until(
          `${ready} && (document.querySelector(".tokens") || document.getElementById("problem").textContent)`,
        );
        return String(
          await page.evaluate(
            `(document.querySelector(".tokens") ?? document.getElementById("problem")).textContent`,
          ),
        );
      };
      const short = {
        messages: [{ role: "user", content: "What is Daybreak?" }],
        max_tokens: 8,
        temperature: 0,
      };
      await run("run-browser", short);
      const expected = await ended();
      const list = { type: "array", items: { type: "integer", minimum: 0, maximum: 9 }, minItems: 700 };
      await run("run-daemon", { ...short, max_tokens: 1800, format: list });
      await expect.poll(() => activeRequests(daemon)).toBe(1);
      daemon.kill("SIGKILL");
      await daemon.exited;
      expect(await ended()).toMatch(
        /^The daemon at 127\.0\.0\.1:\d+ cannot be reached, or ended before it answered\./,
      );
      await run("run-browser", short);
      expect(await ended(), "the tab needs no daemon").toBe(expected);
      daemon = await startDaemon({ args });
      await run("run-daemon", short);
      expect(await ended()).toBe(expected);
    } finally {
      await daemon.stop();
    }
  },
);
