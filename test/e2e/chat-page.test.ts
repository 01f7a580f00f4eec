import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { findChromium } from "../../src/cli/browser/find-chromium.ts";
import { BrowserPage } from "../support/browser-page.ts";
import { requireOnCi } from "../support/require-on-ci.ts";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";
import { tinyPng } from "../support/tiny-png.ts";

const chromium = findChromium();
requireOnCi("Chromium", chromium !== undefined);

const QUESTION = "What is Daybreak?";

/** Checks for people who use a keyboard or a screen reader. */
const AXE = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");

/** What a model might write to run something in the page, or to load something into it. */
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

describe.skipIf(chromium === undefined)("the page", () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-page-"));
  let daemon: TestDaemon;
  let page: BrowserPage;
  beforeAll(async () => {
    daemon = await startDaemon({ args: ["--auto-load"] });
    page = await BrowserPage.open(chromium!, `${daemon.url}/ui/`);
    await ready();
  });
  afterAll(async () => {
    await page?.[Symbol.asyncDispose]();
    await daemon?.stop();
    rmSync(folder, { recursive: true });
  });
  beforeEach(async () => {
    await click("#new");
    await until(`document.querySelectorAll(".message").length === 0`);
  });

  const until = (expression: string) => page.until(expression);
  const ready = () =>
    until(`document.getElementById("status")?.textContent.startsWith("Connected")
    && document.getElementById("model").value !== ""`);
  const click = (selector: string) =>
    page.evaluate(`document.querySelector(${JSON.stringify(selector)}).click()`);
  const textOf = async (selector: string): Promise<string> =>
    String(await page.evaluate(`document.querySelector(${JSON.stringify(selector)})?.textContent`));
  const count = (selector: string) =>
    page.evaluate(`document.querySelectorAll(${JSON.stringify(selector)}).length`);
  const type = (selector: string, text: string) =>
    page.evaluate(`(() => {
      const field = document.querySelector(${JSON.stringify(selector)});
      field.value = ${JSON.stringify(text)};
      field.dispatchEvent(new Event("input", { bubbles: true }));
      field.dispatchEvent(new Event("change", { bubbles: true }));
    })()`);
  const pressButtonOf = (model: string) =>
    page.evaluate(`[...document.querySelectorAll("#models li")]
      .find((each) => each.textContent.startsWith(${JSON.stringify(model)})).querySelector("button").click()`);
  const answered = () => until(`document.getElementById("stop").disabled`);
  async function ask(text: string): Promise<string> {
    await type("#prompt", text);
    await click("#send");
    await until(
      `!document.getElementById("stop").disabled || document.querySelector(".assistant:last-of-type .summary")`,
    );
    await answered();
    return await textOf(".assistant:last-of-type .markdown");
  }
  const settings = async (values: Readonly<Record<string, string>>): Promise<void> => {
    await click("#show-settings");
    for (const [name, value] of Object.entries(values)) await type(`#${name}`, value);
    await click("#show-settings");
  };

  test("answers, says how fast, and keeps the conversation over a reload", async () => {
    await settings({ temperature: "0" });
    const answer = await ask(QUESTION);
    expect(answer).toMatch(/^Daybreak/);
    expect(await textOf(".assistant .summary")).toMatch(/\d+ tokens · \d+\.\d tokens\/s · first after \d/);
    expect(await textOf("#conversations .chosen .open")).toBe(QUESTION);
    await page.evaluate("location.reload()");
    await ready();
    await click("#conversations .open");
    expect(await textOf(".user .text")).toBe(QUESTION);
    expect(await textOf(".assistant .markdown")).toBe(answer);
  });

  test("branches where a question is changed or answered again, and goes back", async () => {
    await settings({ temperature: "1", seed: "" });
    await ask("Who are you?");
    await click(".assistant .again");
    await until(`document.querySelector(".assistant .versions")?.textContent.includes("2 of 2")`);
    await answered();
    await click(".user .edit");
    await type(".editor textarea", QUESTION);
    await page.evaluate(`document.querySelector(".editor").requestSubmit()`);
    await until(`document.querySelector(".user .text")?.textContent === ${JSON.stringify(QUESTION)}`);
    await answered();
    expect(await textOf(".user .versions")).toContain("2 of 2");
    await page.evaluate(`document.querySelector(".user .versions button").click()`);
    expect(await textOf(".user .text")).toBe("Who are you?");
    expect(await textOf(".assistant .versions")).toContain("2 of 2");
  });

  test("stops an answer, and keeps what there is of it", async () => {
    await settings({ temperature: "2", max_tokens: "1500" });
    await type("#prompt", "Write a long story about a ship.");
    await click("#send");
    await until(`(document.querySelector(".assistant .markdown")?.textContent.length ?? 0) > 5`);
    await click("#stop");
    await answered();
    expect((await textOf(".assistant .markdown")).length).toBeGreaterThan(5);
    await settings({ temperature: "0", max_tokens: "" });
  });

  test("sends the system prompt and the settings", async () => {
    await settings({ temperature: "0", max_tokens: "3", system: "You are a pirate." });
    await ask(QUESTION);
    expect(await textOf(".assistant .summary")).toMatch(/^3 tokens .*ended at the limit of tokens$/);
    await settings({ max_tokens: "", system: "" });
  });

  test("answers in the tab what the daemon answers", async () => {
    await settings({ temperature: "0" });
    const there = await ask(QUESTION);
    await click("#new");
    await click("#in-tab");
    expect(await ask(QUESTION)).toBe(there);
    await click("#in-tab");
  });

  test("finds, pins and deletes conversations", async () => {
    await settings({ temperature: "0", max_tokens: "4" });
    await ask("Tell me about penguins.");
    await click("#new");
    await ask("Tell me about rockets.");
    await type("#search", "about penguins");
    expect(await count("#conversations li")).toBe(1);
    await page.evaluate(`document.querySelector('#conversations [title="Pin"]').click()`);
    await type("#search", "");
    expect(await textOf("#conversations li .open")).toBe("Tell me about penguins.");
    const before = Number(await count("#conversations li"));
    await page.evaluate(
      `globalThis.confirm = () => true; document.querySelector("#conversations .delete").click()`,
    );
    expect(await count("#conversations li")).toBe(before - 1);
    await settings({ max_tokens: "" });
  });

  test("shows markdown, and nothing in it runs or is loaded", async () => {
    const messages = [
      { id: "q", role: "user", content: HOSTILE[0] },
      ...HOSTILE.map((content, index) => ({ id: `a${index}`, parent: "q", role: "assistant", content })),
      {
        id: "last",
        parent: "q",
        role: "assistant",
        content: `# Title\n\n**bold** \`code\`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n\`\`\`js\nconst x = 1;\n\`\`\`\n\n${HOSTILE.join("\n\n")}`,
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
    await until(`document.querySelector("#conversations .open")?.textContent === "Hostile"`);
    const asked = page.requests.length;
    await click("#conversations .open");
    await until(`document.querySelector(".markdown h1")?.textContent === "Title"`);
    expect(await textOf(".markdown strong")).toBe("bold");
    expect(await textOf(".markdown td")).toBe("1");
    expect(await count(".markdown .hljs-keyword")).toBe(1);
    const copied = `new Promise((resolve) => {
      navigator.clipboard.writeText = async (text) => resolve(text);
      document.querySelector(".markdown pre .copy").click();
    })`;
    expect(await page.evaluate(copied)).toBe("const x = 1;");
    const elements = "script, img, svg, iframe, style, math, object, form, [onerror], [onload], [onclick]";
    expect(await count(`.markdown :is(${elements})`)).toBe(0);
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

  test("sends images to a model that sees, and says when it does not", async () => {
    const image = path.join(folder, "image.png");
    writeFileSync(image, tinyPng(64, 64));
    expect(await page.evaluate(`document.getElementById("image").disabled`)).toBe(true);
    await type("#model", "daybreak-mini-vision");
    await until(`!document.getElementById("image").disabled`);
    await page.chooseFile("#image", image);
    await until(`document.querySelector(".attached img")`);
    await settings({ temperature: "0", max_tokens: "8" });
    expect((await ask("What is in the image?")).length).toBeGreaterThan(0);
    expect(await count(".user img")).toBe(1);
    await settings({ max_tokens: "" });
  });

  test("loads and unloads models", async () => {
    await click("#show-models");
    await until(
      `[...document.querySelectorAll("#models li")].some((each) => each.textContent.includes("daybreak-mini-pirate"))`,
    );
    const state = (text: string) =>
      until(`[...document.querySelectorAll("#models li")]
      .find((each) => each.textContent.startsWith("daybreak-mini-pirate")).textContent.includes(${JSON.stringify(text)})`);
    await pressButtonOf("daybreak-mini-pirate");
    await state("loaded ·");
    await pressButtonOf("daybreak-mini-pirate");
    await state("available ·");
    expect(await textOf("#problem")).toBe("");
    await click("#show-models");
  });

  test.each([360, 390, 1400])("needs no scrolling sideways at %i pixels", async (width) => {
    await page.resize(width, 800);
    await settings({ temperature: "0", max_tokens: "4" });
    await ask(`A_very_long_word_${"x".repeat(200)}`);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
    await click("#show-models");
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
    await click("#show-models");
  });

  test.each(["light", "dark"])("has nothing that axe objects to, in %s", async (scheme) => {
    await page.resize(1200, 900);
    await page.prefer(scheme);
    await settings({ temperature: "0", max_tokens: "8" });
    await ask(QUESTION);
    await click("#show-settings");
    await page.evaluate(AXE);
    const violations = await page.evaluate(`axe.run().then(({ violations }) =>
      violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html }) => html).join(" ")))`);
    expect(violations).toEqual([]);
    await click("#show-settings");
  });

  test("breaks no rule of its Content-Security-Policy and asks nobody else", () => {
    expect(page.problems).toEqual([]);
    const elsewhere = page.requests.filter(
      (url) => !/^(?:blob:)?http:\/\/127\.0\.0\.1:/.test(url) && !url.startsWith("data:"),
    );
    expect(elsewhere).toEqual([]);
  });
});

test.skipIf(chromium === undefined)("the page works over plain HTTP from another machine", async () => {
  const env = { SERVICE_HTTP_ALLOWED_HOSTS: "lan.test" };
  const daemon = await startDaemon({ args: ["--auto-load"], env });
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
    expect(await page.evaluate(`document.querySelector(".assistant .markdown").textContent`)).toMatch(/\w+/);
    await page.evaluate(
      `[...document.querySelectorAll(".actions button")].find((each) => each.textContent === "Copy").click()`,
    );
    await page.until(`document.getElementById("problem").textContent.includes("HTTPS")`);
  } finally {
    await daemon.stop();
  }
});
