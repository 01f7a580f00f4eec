import { writeFileSync } from "node:fs";
import path from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { findChromium } from "../support/launch-chromium.ts";
import type { BrowserPage } from "../support/browser-page.ts";
import type { PageActions } from "../support/page-actions.ts";
import { need } from "../support/need.ts";
import { tinyPdf } from "../support/tiny-pdf.ts";
import { setUpChatPage } from "./tests-in-chat.ts";

const chromium = findChromium();
const CHROMIUM = need("Chromium", chromium !== undefined);

const QUESTION = "What is Daybreak?";

describe.skipIf(CHROMIUM.isMissing)(`in the chat${CHROMIUM.note}`, () => {
  let page: BrowserPage;
  let on: PageActions;
  const folder = setUpChatPage(chromium!, (opened) => void ({ page, on } = opened));
  beforeEach(async () => {
    await on.set({ temperature: "0", max_tokens: "", format: "text", "stop-texts": "", system: "" });
  });

  const answers = () => on.textOf(".assistant:last-of-type .markdown");
  const file = (name: string, content: string | Buffer): string => {
    const at = path.join(folder, name);
    writeFileSync(at, content);
    return at;
  };
  /** Records the bodies of the chat requests that the page sends from now on. */
  const recordRequests = () =>
    page.evaluate(`(() => {
      globalThis.sent = [];
      const send = globalThis.fetch;
      globalThis.fetch = (address, init) => {
        if (String(address).endsWith("/api/chat")) globalThis.sent.push(JSON.parse(init.body));
        return send(address, init);
      };
    })()`);
  const lastRequest = async () =>
    JSON.parse(String(await page.evaluate("JSON.stringify(globalThis.sent.at(-1))")));
  const key = (code: string) =>
    page.evaluate(`dispatchEvent(new KeyboardEvent("keydown", { code: "${code}", key: "x", altKey: true }))`);

  test("an answer that ended at max_tokens can be continued", async () => {
    const whole = await on.ask(QUESTION);
    await on.click("#new");
    await on.set({ max_tokens: "4" });
    const begun = await on.ask(QUESTION);
    expect(whole.startsWith(begun.trim())).toBe(true);
    await on.set({ max_tokens: "" });
    await on.click(".continue");
    await on.until(`document.querySelector(".assistant .markdown").textContent.length > ${begun.length}`);
    await on.answered();
    expect(await answers()).toBe(whole);
    expect(await on.count(".assistant")).toBe(1);
  });

  test("a question can be answered again by another model and in this tab, and the answers shown side by side", async () => {
    const first = await on.ask(QUESTION);
    const again = async (source: string, version: string): Promise<void> => {
      await on.type(".again-with", source);
      await on.until(`document.querySelector(".assistant .versions")?.textContent.includes("${version}")`);
      await on.answered();
    };
    await again("daemon/daybreak-mini-pirate", "2 of 2");
    expect(await on.textOf(".assistant .summary")).toContain("daybreak-mini-pirate");
    await again("tab/daybreak-mini", "3 of 3");
    expect(await on.textOf(".assistant .summary")).toContain("daybreak-mini, in this tab");
    expect(await answers()).toBe(first);
    await on.click(".beside");
    expect(await on.count(".beside-each-other section")).toBe(3);
    expect(await on.textOf(".beside-each-other section .markdown")).toBe(first);
    await on.press(".beside-each-other section", "Go on from this one");
    await on.until(`document.querySelector(".assistant .versions").textContent.includes("1 of 3")`);
  });

  test("the reasoning of a model is collapsed above its answer", async () => {
    await on.click("#show-settings");
    await on.click("#think");
    await on.click("#show-settings");
    expect(await on.ask("What is 45 + 17?")).toContain("62");
    expect(await on.textOf(".assistant .thinking")).toMatch(/^Thinking.*45/s);
    expect(await page.evaluate(`document.querySelector(".assistant .thinking").open`)).toBe(false);
    await on.click("#show-settings");
    await on.click("#think");
    await on.click("#show-settings");
  });

  test("the tokens of an answer are shaded by probability", async () => {
    await on.click("#show-settings");
    await on.click("#logprobs");
    await on.click("#show-settings");
    await on.set({ max_tokens: "4" });
    const begun = await on.ask(QUESTION);
    await on.set({ max_tokens: "" });
    await on.click(".continue");
    await on.until(`document.querySelector(".assistant .markdown").textContent.length > ${begun.length}`);
    await on.answered();
    const text = await answers();
    await on.click(".assistant .tokens");
    const shown = await on.textOf(".token-list");
    expect(shown.trim()).toBe(text.trim());
    expect(await page.evaluate(`document.querySelector(".token").title`)).toMatch(
      /^".+" \d+\.\d %\n(".*" \d+\.\d %\n?){5}$/,
    );
    await on.click("#show-settings");
    await on.click("#logprobs");
    await on.click("#show-settings");
  });

  test("an answer matches the JSON Schema of the settings, and an invalid schema is reported", async () => {
    await on.set({ format: "schema" });
    await on.set({
      schema: '{"type": "object", "properties": {"name": {"enum": ["Ada"]}}, "required": ["name"]}',
    });
    expect(JSON.parse(await on.ask("Who?"))).toEqual({ name: "Ada" });
    await on.set({ schema: "{" });
    await on.type("#prompt", "Who?");
    await on.click("#send");
    await on.until(`document.getElementById("problem").textContent.includes("not valid JSON")`);
    expect(await on.textOf(".assistant:last-of-type .failed")).toContain("Mend it");
  });

  test("all settings are sent, and a preset restores them", async () => {
    const values = {
      min_p: "0.05",
      repeat_penalty: "1.1",
      presence_penalty: "0.1",
      frequency_penalty: "0.2",
      top_p: "0.9",
      top_k: "30",
      seed: "7",
      "stop-texts": "END\nSTOP",
    };
    await on.set({ ...values, max_tokens: "3" });
    const empty = Object.fromEntries(Object.keys(values).map((name) => [name, ""]));
    await on.click("#show-settings");
    await on.type("#preset-name", "Careful");
    await on.click("#save-preset");
    await on.click("#show-settings");
    await on.set(empty);
    await on.click("#show-settings");
    await on.type("#preset", "Careful");
    await on.click("#show-settings");
    await recordRequests();
    await on.ask(QUESTION);
    expect(await lastRequest()).toMatchObject({
      temperature: 0,
      min_p: 0.05,
      repeat_penalty: 1.1,
      presence_penalty: 0.1,
      frequency_penalty: 0.2,
      top_p: 0.9,
      top_k: 30,
      seed: 7,
      max_tokens: 3,
      stop: ["END", "STOP"],
    });
    await on.click("#show-settings");
    await on.type("#preset-name", "Careful");
    await on.until(`!document.getElementById("delete-preset").disabled`);
    await on.click("#delete-preset");
    await on.until(`document.querySelectorAll("#preset option").length === 1`);
    await on.click("#show-settings");
    await on.set(empty);
  });

  test("text and PDF files are sent as text", async () => {
    await recordRequests();
    await page.chooseFile("#attach", file("notes.txt", "The ship is called Aurora."));
    await on.until(`document.querySelectorAll(".attached .attachment").length === 1`);
    await page.chooseFile(
      "#attach",
      file("plan.pdf", tinyPdf(["We sail on Monday.", "We return on Friday."])),
    );
    await on.until(`document.querySelectorAll(".attached .attachment").length === 2`);
    await on.set({ max_tokens: "4" });
    await on.ask("When do we sail?");
    const { messages } = await lastRequest();
    expect(messages.at(-1).content).toBe(
      [
        "File: notes.txt\n```\nThe ship is called Aurora.\n```",
        "File: plan.pdf\n```\nWe sail on Monday.\n\nWe return on Friday.\n```",
        "When do we sail?",
      ].join("\n\n"),
    );
    expect(await on.textOf(".user .attachment summary")).toBe("notes.txt");
  });

  test.each([
    ["a damaged PDF file", "broken.pdf", "%PDF-1.4 nothing", /broken\.pdf cannot be read: it is damaged/],
    ["a PDF file without text", "scan.pdf", tinyPdf([""]), /scan\.pdf has no text, only images/],
    ["a binary file", "data.bin", Buffer.from([0, 1, 2, 255]), /data\.bin is neither text in UTF-8/],
    ["an empty file", "empty.txt", "", /empty\.txt is empty/],
  ])("%s is rejected with an explanation", async (_what, name, content, words) => {
    await page.chooseFile("#attach", file(name, content));
    await on.until(`document.getElementById("problem").textContent.includes(${JSON.stringify(name)})`);
    expect(await on.textOf("#problem")).toMatch(words);
    expect(await on.count(".attachment")).toBe(0);
    await on.click("#problem button");
    expect(await on.textOf("#problem")).toBe("");
  });

  test("formulas are rendered, prices are not, and LaTeX cannot add links or HTML", async () => {
    const content = [
      "Euler: $e^{i\\pi} + 1 = 0$, and \\(a^2\\). It costs $5 and $6.",
      "$$\\int_0^1 x\\,dx = \\frac{1}{2}$$",
      "$\\href{javascript:globalThis.hacked=1}{x}$ $\\text{<img src=x onerror=globalThis.hacked=2>}$",
      "$\\broken{$",
    ].join("\n\n");
    const conversation = {
      id: "math",
      title: "Math",
      isPinned: true,
      changedAt: 1,
      model: "",
      settings: {},
      messages: [
        { id: "q", role: "user", content: "?" },
        { id: "a", parent: "q", role: "assistant", content },
      ],
      leaf: "a",
    };
    const text = JSON.stringify({ daybreak_conversations: 1, conversations: [conversation] });
    await page.chooseFile("#import", file("math.json", text));
    await on.until(`document.querySelector("#conversations .open")?.textContent === "Math"`);
    await on.click("#conversations .open");
    await on.until(`document.querySelectorAll(".markdown math").length >= 3`);
    expect(await on.count('.markdown math[display="block"] mfrac')).toBe(1);
    expect(await on.textOf(".markdown")).toContain("It costs $5 and $6.");
    expect(await on.count(".markdown :is(a, img, [href])")).toBe(0);
    expect(await page.evaluate("globalThis.hacked ?? 'nothing'")).toBe("nothing");
    expect(await on.textOf(".markdown")).toContain("\\broken{");
  });

  test("the answer to a second question shows how many prompt tokens were reused", async () => {
    await on.ask(QUESTION);
    await on.ask("And who are you?");
    expect(await on.textOf(".assistant:last-of-type .summary")).toMatch(/\d+ of \d+ prompt tokens reused/);
  });

  test("a long prompt shows the progress of prefill", async () => {
    await page.evaluate(`(() => {
      globalThis.shares = [];
      new MutationObserver(() => {
        const share = document.getElementById("prompt-share");
        if (share) globalThis.shares.push(share.value);
      }).observe(document.body, { subtree: true, childList: true, attributes: true });
    })()`);
    await on.set({ max_tokens: "4" });
    await on.ask("Count the words: " + "penguin rocket ".repeat(120));
    const shares = await page.evaluate("globalThis.shares.filter((share) => share > 0)");
    expect(shares).not.toEqual([]);
    expect(await on.count("#prompt-share")).toBe(0);
  });

  test("keyboard shortcuts start a conversation, answer again, edit and list all shortcuts", async () => {
    await on.set({ max_tokens: "4" });
    await on.ask(QUESTION);
    await key("KeyR");
    await on.until(`document.querySelector(".assistant .versions")?.textContent.includes("2 of 2")`);
    await on.answered();
    await key("KeyE");
    await on.until(`document.querySelector(".editor textarea")`);
    await key("KeyK");
    expect(await on.textOf("#shortcuts")).toContain("New conversation");
    await key("KeyK");
    await key("KeyN");
    await on.until(`document.querySelectorAll(".message").length === 0`);
    expect(await page.evaluate("document.activeElement.id")).toBe("prompt");
  });

  test("finished blocks of a growing answer are not rendered again", async () => {
    await page.evaluate(`(() => {
      globalThis.redrawn = 0;
      new MutationObserver((changes) => {
        for (const { target } of changes)
          if (target.matches?.(".markdown > :first-child") && target.parentElement.children.length > 1)
            globalThis.redrawn += 1;
      }).observe(document.body, { subtree: true, childList: true });
    })()`);
    await on.set({ format: "schema", max_tokens: "200" });
    const paragraphs =
      '{"const": "one\\\\n\\\\ntwo\\\\n\\\\nthree\\\\n\\\\nfour\\\\n\\\\nfive\\\\n\\\\nsix"}';
    await on.set({ schema: paragraphs });
    await on.ask("Say it.");
    expect(await page.evaluate("globalThis.redrawn")).toBe(0);
    await on.set({ format: "text", max_tokens: "" });
  });

  test("the page violates no rule of its Content-Security-Policy", () => {
    expect(page.problems).toEqual([]);
  });
});
