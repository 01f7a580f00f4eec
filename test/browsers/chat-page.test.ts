import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { findChromium } from "../support/launch-chromium.ts";
import { BrowserPage } from "../support/browser-page.ts";
import type { PageActions } from "../support/page-actions.ts";
import { need } from "../support/need.ts";
import { startDaemon } from "../support/start-daemon.ts";
import { tinyPng } from "../support/tiny-png.ts";
import { setUpChatPage } from "./tests-in-chat.ts";

const chromium = findChromium();
const CHROMIUM = need("Chromium", chromium !== undefined);

const QUESTION = "What is Daybreak?";

/** Script of axe, which checks accessibility. */
const AXE = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");

/** Generated text that tries to run scripts in the page, or to load something into it. */
const HOSTILE = [
  "<script>globalThis.hacked = 1</script>",
  '<img src="http://127.0.0.1:1/x.png" onerror="globalThis.hacked = 2">',
  "[click](javascript:globalThis.hacked=3)",
  "[click](data:text/html,<script>globalThis.hacked=4</script>)",
  '<svg onload="globalThis.hacked = 5"><a xlink:href="javascript:globalThis.hacked=6">x</a></svg>',
  "![pixel](http://127.0.0.1:1/pixel.png)",
  '<iframe srcdoc="<script>parent.hacked = 7</script>"></iframe>',
  "<style>* { display: none }</style>",
  "```html\n<script>globalThis.hacked = 8</script>\n```",
  '<math><mi//xlink:href="data:x,<script>globalThis.hacked=9</script>">',
  '<a href="https://example.com" onclick="globalThis.hacked = 10">link</a>',
];

describe.skipIf(CHROMIUM.isMissing)(`the page${CHROMIUM.note}`, () => {
  let page: BrowserPage;
  let on: PageActions;
  const folder = setUpChatPage(chromium!, (opened) => void ({ page, on } = opened));

  test("shows an answer with its speed, and the conversation survives a reload", async () => {
    await on.set({ temperature: "0" });
    const answer = await on.ask(QUESTION);
    expect(answer).toMatch(/^Daybreak/);
    expect(await on.textOf(".assistant .summary")).toMatch(
      /\d+ tokens · \d+\.\d tokens\/s · first after \d.* s · daybreak-mini/,
    );
    expect(await on.textOf("#conversations .chosen .open")).toBe(QUESTION);
    await page.evaluate("globalThis.isOld = true; location.reload()");
    await on.until("globalThis.isOld === undefined");
    await on.ready();
    await on.until(`document.querySelector("#conversations .open")`);
    await on.click("#conversations .open");
    expect(await on.textOf(".user .text")).toBe(QUESTION);
    expect(await on.textOf(".assistant .markdown")).toBe(answer);
  });

  test("creates branches when a question is edited or answered again, and switches between them", async () => {
    await on.set({ temperature: "1", seed: "" });
    await on.ask("Who are you?");
    await on.click(".assistant .again");
    await on.until(`document.querySelector(".assistant .versions")?.textContent.includes("2 of 2")`);
    await on.answered();
    await on.click(".user .edit");
    await on.type(".editor textarea", QUESTION);
    await page.evaluate(`document.querySelector(".editor").requestSubmit()`);
    await on.until(`document.querySelector(".user .text")?.textContent === ${JSON.stringify(QUESTION)}`);
    await on.answered();
    expect(await on.textOf(".user .versions")).toContain("2 of 2");
    await page.evaluate(`document.querySelector(".user .versions button").click()`);
    expect(await on.textOf(".user .text")).toBe("Who are you?");
    expect(await on.textOf(".assistant .versions")).toContain("2 of 2");
  });

  test("stops an answer and keeps its text", async () => {
    await on.set({ temperature: "2", max_tokens: "1500" });
    await on.type("#prompt", "Write a long story about a ship.");
    await on.click("#send");
    await on.until(`(document.querySelector(".assistant .markdown")?.textContent.length ?? 0) > 5`);
    await on.click("#stop");
    await on.answered();
    expect((await on.textOf(".assistant .markdown")).length).toBeGreaterThan(5);
    await on.set({ temperature: "0", max_tokens: "" });
  });

  test("sends the system prompt and the settings", async () => {
    await on.set({ temperature: "0", max_tokens: "3", system: "You are a pirate." });
    await on.ask(QUESTION);
    expect(await on.textOf(".assistant .summary")).toMatch(/^3 tokens .*ended at the limit of tokens$/);
    await on.set({ max_tokens: "", system: "" });
  });

  test("generates the same answer in the tab as in the daemon", async () => {
    await on.set({ temperature: "0" });
    const there = await on.ask(QUESTION);
    await on.click("#new");
    await on.click("#in-tab");
    expect(await on.ask(QUESTION)).toBe(there);
    await on.click("#in-tab");
  });

  test("searches, pins and deletes conversations", async () => {
    await on.set({ temperature: "0", max_tokens: "4" });
    await on.ask("Tell me about penguins.");
    await on.click("#new");
    await on.ask("Tell me about rockets.");
    await on.type("#search", "about penguins");
    expect(await on.count("#conversations li")).toBe(1);
    await page.evaluate(`document.querySelector('#conversations [title="Pin"]').click()`);
    await on.type("#search", "");
    expect(await on.textOf("#conversations li .open")).toBe("Tell me about penguins.");
    const before = await on.count("#conversations li");
    await page.evaluate(
      `globalThis.confirm = () => true; document.querySelector("#conversations .delete").click()`,
    );
    expect(await on.count("#conversations li")).toBe(before - 1);
    await on.set({ max_tokens: "" });
  });

  test("renders Markdown without running or loading anything in it", async () => {
    const messages = [
      { id: "q", role: "user", content: HOSTILE[0] },
      ...HOSTILE.map((content, index) => ({ id: `a${index}`, parent: "q", role: "assistant", content })),
      {
        id: "last",
        parent: "q",
        role: "assistant",
        content: `# Title\n\n**bold** \`code\`\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n\`\`\`js\nconst x = 1;\n\`\`\`\n\n${HOSTILE.join("\n\n")}`,
      },
    ];
    const conversation = {
      id: "hostile",
      title: "Hostile",
      isPinned: true,
      changedAt: 1,
      model: "",
      settings: {},
      messages,
      leaf: "last",
    };
    const file = path.join(folder, "conversations.json");
    writeFileSync(file, JSON.stringify({ daybreak_conversations: 1, conversations: [conversation] }));
    await page.chooseFile("#import", file);
    await on.until(`document.querySelector("#conversations .open")?.textContent === "Hostile"`);
    const asked = page.requests.length;
    await on.click("#conversations .open");
    await on.until(`document.querySelector(".markdown h1")?.textContent === "Title"`);
    expect(await on.textOf(".markdown strong")).toBe("bold");
    expect(await on.textOf(".markdown td")).toBe("1");
    expect(await on.textOf('.markdown td[align="right"]')).toBe("2");
    expect(await on.count(".markdown .hljs-keyword")).toBe(1);
    const copied = `new Promise((resolve) => {
      navigator.clipboard.writeText = async (text) => resolve(text);
      document.querySelector(".markdown pre .copy").click();
    })`;
    expect(await page.evaluate(copied)).toBe("const x = 1;");
    const elements = "script, img, svg, iframe, style, math, object, form, [onerror], [onload], [onclick]";
    expect(await on.count(`.markdown :is(${elements})`)).toBe(0);
    const links = await page.evaluate(
      `[...document.querySelectorAll(".markdown a[href]")].filter(({ href }) => !/^(https?|mailto):/.test(href)).length`,
    );
    expect(links).toBe(0);
    expect(await page.evaluate("globalThis.hacked ?? 'nothing'")).toBe("nothing");
    expect(page.requests.slice(asked).filter((url) => url.includes(":1/"))).toEqual([]);
    await page.evaluate(
      `globalThis.confirm = () => true; document.querySelector("#conversations .chosen .delete").click()`,
    );
  });

  test("sends images to a vision model, and reports if the model does not support them", async () => {
    const image = path.join(folder, "image.png");
    writeFileSync(image, tinyPng(64, 64));
    await page.chooseFile("#attach", image);
    await on.until(`document.getElementById("problem").textContent.includes("does not see images")`);
    await on.type("#model", "daybreak-mini-vision");
    await page.chooseFile("#attach", image);
    await on.until(`document.querySelector(".attached img")`);
    await on.set({ temperature: "0", max_tokens: "8" });
    expect((await on.ask("What is in the image?")).length).toBeGreaterThan(0);
    expect(await on.count(".user img")).toBe(1);
    await on.set({ max_tokens: "" });
  });

  test.each([722, 780, 959, 961])("has a header of one line at %i pixels", async (width) => {
    await page.resize(width, 800);
    expect(await page.evaluate("document.querySelector('header').offsetHeight")).toBeLessThan(60);
  });

  test.each([360, 390, 1400])("needs no scrolling sideways at %i pixels", async (width) => {
    await page.resize(width, 800);
    await on.set({ temperature: "0", max_tokens: "4" });
    await on.ask(`A_very_long_word_${"x".repeat(200)}`);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
    for (const panel of ["settings", "tools", "shortcuts"]) {
      await on.click(`#show-${panel}`);
      if (panel === "tools") await on.click("#new-tool");
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
      await on.click(`#show-${panel}`);
    }
    for (const view of ["#/models", "#/monitor", ""] as const) {
      await on.enter(view);
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
    }
  });

  test.each(["light", "dark"])("has no accessibility violations in the %s scheme", async (scheme) => {
    await page.resize(1200, 900);
    await page.prefer(scheme);
    await on.set({ temperature: "0", max_tokens: "8" });
    await on.ask(QUESTION);
    await page.evaluate(AXE);
    for (const panel of ["settings", "tools", "shortcuts"]) {
      await on.click(`#show-${panel}`);
      if (panel === "tools") await on.click("#new-tool");
      const violations = await page.evaluate(`axe.run().then(({ violations }) =>
        violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html }) => html).join(" ")))`);
      expect(violations).toEqual([]);
      await on.click(`#show-${panel}`);
    }
  });

  test("violates no rule of its Content-Security-Policy, and sends no requests to other hosts", () => {
    expect(page.problems).toEqual([]);
    const external = page.requests.filter(
      (url) => !/^(?:blob:)?http:\/\/127\.0\.0\.1:/.test(url) && !url.startsWith("data:"),
    );
    expect(external).toEqual([]);
  });
});

test.skipIf(CHROMIUM.isMissing)(
  `the page works over plain HTTP from another machine${CHROMIUM.note}`,
  async () => {
    const env = { SERVICE_HTTP_ALLOWED_HOSTS: "lan.test" };
    const daemon = await startDaemon({ env });
    try {
      const flags = ["--disable-gpu", "--host-resolver-rules=MAP lan.test 127.0.0.1"];
      const url = daemon.url.replace("127.0.0.1", "lan.test");
      await using page = await BrowserPage.open(chromium!, `${url}/ui/`, { flags });
      await page.until(`document.getElementById("model")?.value`);
      expect(await page.evaluate("isSecureContext")).toBe(false);
      await page.evaluate(`(() => {
      const field = document.getElementById("prompt");
      field.value = "What is Daybreak?";
      field.dispatchEvent(new Event("input", { bubbles: true }));
    })()`);
      await page.evaluate(`document.getElementById("send").click()`);
      await page.until(`document.querySelector(".assistant .summary")`);
      expect(await page.evaluate(`document.querySelector(".assistant .markdown").textContent`)).toMatch(
        /\w+/,
      );
      await page.evaluate(
        `[...document.querySelectorAll(".actions button")].find((each) => each.textContent === "Copy").click()`,
      );
      await page.until(`document.getElementById("problem").textContent.includes("HTTPS")`);
    } finally {
      await daemon.stop();
    }
  },
);
