import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { findChromium } from "../support/launch-chromium.ts";
import type { BrowserPage } from "../support/browser-page.ts";
import {
  card,
  GATED,
  type ModelsView,
  offer,
  openModelsView,
  type OpenModelsView,
  stored,
} from "../support/models-view.ts";
import { need } from "../support/need.ts";
import { shippedModel } from "../support/shared-daemon.ts";

const chromium = findChromium();
const CHROMIUM = need("Chromium", chromium !== undefined);

describe.skipIf(CHROMIUM.isMissing)(`the view Models${CHROMIUM.note}`, () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-models-view-"));
  let view: OpenModelsView;
  let on: ModelsView;
  let page: BrowserPage;
  beforeAll(async () => {
    view = await openModelsView(chromium!);
    ({ on, page } = view);
  });
  afterAll(async () => {
    await view?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });
  beforeEach(async () => {
    await on.enter("#/models");
    await on.isThere(card("daybreak-mini"));
  });

  /** Drops a file onto the page. */
  const drop = (name: string, text: string) =>
    page.evaluate(`(() => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([${JSON.stringify(text)}], ${JSON.stringify(name)}));
      document.getElementById("models").dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
    })()`);

  describe("installed models", () => {
    test("show their properties, and more details on demand", async () => {
      expect(await on.textOf(card("daybreak-mini"))).toMatch(
        /^daybreak-miniDefault|default.*loaded.*4\.8 MB · Q8_0 · .* weights · 2,048 tokens of context · mit license · uses .* of memory/,
      );
      expect(await on.textOf(`${card("daybreak-mini-vision")} .chips`)).toContain("sees images");
      expect(await on.textOf(card("daybreak-mini-pirate"))).toContain(
        "ships with Daybreak, made of daybreak-mini",
      );
      await on.details("daybreak-mini");
      const text = await on.textOf(`${card("daybreak-mini")} .details`);
      for (const part of ["llama", "trained for 2,048", "daybreak-mini.gguf", "Chat template"])
        expect(text).toContain(part);
      await on.click(`${card("daybreak-mini")} .more`);
    });

    test("for embeddings are marked as not usable in the chat", async () => {
      expect(await on.textOf(card("daybreak-mini-embed"))).toContain(
        "Turns texts into vectors for search. It does not chat.",
      );
      expect(
        await page.evaluate(
          `[...document.querySelectorAll("${card("daybreak-mini-embed")} button")].map((each) => each.textContent)`,
        ),
      ).toEqual(["Load", "Load with …", "Details"]);
    });

    test("can be loaded with settings and unloaded", async () => {
      await on.press(card("daybreak-mini-pirate"), "Load with …");
      await on.has("dialog", "It was trained for 2,048.");
      await on.has("dialog", "This machine uses no GPU");
      expect(await page.evaluate(`document.querySelector('[name="context_size"]').placeholder`)).toBe(
        "2048, by default",
      );
      await on.type('[name="context_size"]', "512");
      await on.submit("dialog form");
      await on.has(card("daybreak-mini-pirate"), "512 tokens of context");
      await on.badges("daybreak-mini-pirate", "loaded");
      await on.press(card("daybreak-mini-pirate"), "Unload");
      await on.badges("daybreak-mini-pirate", "on disk");
      await on.has(card("daybreak-mini-pirate"), "2,048 tokens of context");
    });

    test("can be reloaded with other settings, and become the default", async () => {
      await on.press(card("daybreak-mini-pirate"), "Load");
      await on.badges("daybreak-mini-pirate", "loaded");
      await on.press(card("daybreak-mini-pirate"), "Reload …");
      await on.until(`document.querySelector("dialog[open]")`);
      await on.type('[name="context_size"]', "1024");
      await on.submit("dialog form");
      await on.has(card("daybreak-mini-pirate"), "1,024 tokens of context");
      await on.details("daybreak-mini-pirate");
      await on.press(card("daybreak-mini-pirate"), "Make default");
      await on.badges("daybreak-mini-pirate", "default", "loaded");
      await on.press(card("daybreak-mini-pirate"), "Unload");
      await on.badges("daybreak-mini-pirate", "default", "on disk");
      // An unloaded model can be the default.
      await on.details("daybreak-mini");
      await on.press(card("daybreak-mini"), "Make default");
      await on.badges("daybreak-mini", "default", "loaded");
      await on.badges("daybreak-mini-pirate", "on disk");
      expect(await on.textOf("#problem")).toBe("");
    });

    test("can be copied, and deleted after a confirmation that explains the effect", async () => {
      await on.open("daybreak-mini", "Copy …");
      await on.type("dialog [name='name']", "daybreak-mini-embed");
      await on.submit("dialog form");
      await on.has("dialog .wrong", "daybreak-mini-embed");
      await on.type("dialog [name='name']", "twin");
      await on.submit("dialog form");
      await on.isThere(card("twin"));
      await on.isGone("dialog");
      await on.open("twin", "Delete …");
      expect(await on.textOf("dialog")).toContain(
        "Its Modelfile is deleted. The model that it is made of stays",
      );
      await on.press("dialog", "Keep");
      await on.isGone("dialog");
      expect(await on.count(card("twin"))).toBe(1);
      await on.open("twin", "Delete …");
      await on.confirm(card("twin"));
      await on.open("daybreak-mini", "Delete …");
      expect(await on.textOf("dialog")).toContain("so its files stay");
      await page.evaluate(`document.querySelector("dialog").close()`);
      await on.isGone("dialog");
    });

    test("open in the chat", async () => {
      await on.press(card("daybreak-mini-pirate"), "Chat");
      await on.until(`document.getElementById("model")?.value === "daybreak-mini-pirate"`);
      await on.type("#model", "daybreak-mini");
      expect(await on.textOf("#problem")).toBe("");
    });
  });

  describe("a Modelfile", () => {
    test("creates a model, and an error selects its line", async () => {
      await on.press("#models", "New Modelfile …");
      await on.has("dialog", "New Modelfile");
      expect(await on.fieldOf("dialog textarea")).toMatch(/^FROM daybreak-mini\n/);
      await on.type("dialog [name='name']", "brief");
      const wrong = "FROM daybreak-mini\nSYSTEM You are brief.\nPARAMETER temperature hot\nPARSER brief\n";
      await on.type("dialog textarea", wrong);
      await on.submit("dialog form");
      await on.has("#modelfile-problem", "Modelfile, line 3");
      expect(await on.textOf("dialog .code .wrong")).toBe("3\n");
      const caret = await page.evaluate(`(() => {
        const { selectionStart, selectionEnd, value } = document.querySelector("dialog textarea");
        return document.activeElement.tagName + ": " + value.slice(selectionStart, selectionEnd);
      })()`);
      expect(caret).toBe("TEXTAREA: PARAMETER temperature hot");
      await on.type("dialog textarea", wrong.replace("hot", "0.5"));
      await on.submit("dialog form");
      await on.isThere(card("brief"));
      await on.details("brief");
      const details = await on.textOf(`${card("brief")} .details`);
      expect(details).toContain("temperature 0.5");
      expect(details).toContain("PARSER brief has no effect");
    });

    test("can be edited", async () => {
      await on.open("brief", "Modelfile …");
      await on.until(`document.querySelector("dialog textarea").value.includes("temperature 0.5")`);
      expect(await page.evaluate(`document.querySelector("dialog [name='name']").value`)).toBe("brief");
      expect(await on.textOf("dialog .main")).toBe("Replace the model");
      const text = String(await on.fieldOf("dialog textarea"));
      await on.type("dialog textarea", text.replace("0.5", "0.75"));
      await on.submit("dialog form");
      await on.isGone("dialog");
      await page.evaluate(`document.querySelector("${card("brief")} .more").click()`);
      expect(await (await fetch(`${view.daemon.url}/api/models/brief/modelfile`)).text()).toContain(
        "temperature 0.75",
      );
      await on.open("brief", "Delete …");
      await on.confirm(card("brief"));
      expect(await (await fetch(`${view.daemon.url}/api/models`)).text()).not.toContain('"brief"');
    });
  });

  describe("models in this browser", () => {
    test("can be added from a file, chat in this tab, and be deleted", async () => {
      const file = path.join(folder, "my-own.gguf");
      writeFileSync(file, shippedModel());
      await page.chooseFile("#gguf", file);
      await on.has(stored("my-own"), "4.8 MB · only here");
      await on.has("#storage", "of the browser's storage");
      await on.press(stored("my-own"), "Chat in this tab");
      await on.until(`document.getElementById("model")?.value === "my-own"`);
      await on.set({ temperature: "0", max_tokens: "8" });
      expect(await on.ask("What is Daybreak?")).toMatch(/^Daybreak/);
      await on.click("#in-tab");
      await on.type("#model", "daybreak-mini");
      await on.set({ temperature: "", max_tokens: "" });
      await on.enter("#/models");
      await on.press(stored("my-own"), "Delete …");
      await on.has("dialog", "stays where it is");
      await on.confirm(stored("my-own"));
    });

    test("get a new name if the daemon has a model of the same name", async () => {
      const file = path.join(folder, "daybreak-mini.gguf");
      writeFileSync(file, shippedModel());
      await page.chooseFile("#gguf", file);
      await on.isThere(stored("daybreak-mini-2"));
      await on.press(stored("daybreak-mini-2"), "Delete …");
      await on.confirm(stored("daybreak-mini-2"));
      expect(await on.textOf("#problem")).toBe("");
    });

    test("can be dropped onto the page, and other files are rejected with an explanation", async () => {
      await drop("half-00002-of-00002.gguf", "GGUF and more");
      await on.has("#problem", "choose half-00001-of-00002.gguf, too");
      await drop("notes.txt", "no model");
      await on.has("#problem", "notes.txt is not a GGUF file.");
      await drop("dropped.gguf", "GGUF, and nothing of use");
      await on.isThere(stored("dropped"));
      await on.press(stored("dropped"), "Delete …");
      await on.confirm(stored("dropped"));
      expect(await on.textOf("#problem")).toBe("");
    });
  });

  test.each([360, 390, 1400])("needs no scrolling sideways at %i pixels", async (width) => {
    await page.resize(width, 800);
    await on.offers("ada/tiny-GGUF");
    await on.details("daybreak-mini");
    for (const element of ["document.documentElement", `document.getElementById("models")`])
      expect(await page.evaluate(`${element}.scrollWidth - ${element}.clientWidth`)).toBe(0);
    // The page itself does not scroll vertically.
    expect(await page.evaluate("document.documentElement.scrollHeight")).toBeLessThanOrEqual(800);
  });

  test.each(["light", "dark"])("has no accessibility violations in the %s scheme", async (scheme) => {
    await page.resize(1200, 900);
    await page.prefer(scheme);
    await on.offers("bob/tiny-gated-GGUF");
    await on.press(offer(GATED), "Download");
    await on.has("#downloads", "HUB_TOKEN");
    await on.details("daybreak-mini");
    expect(await on.violations()).toEqual([]);
    for (const dialog of ["Modelfile …", "Delete …"]) {
      await on.open("daybreak-mini", dialog);
      expect(await on.violations()).toEqual([]);
      await page.evaluate(`document.querySelector("dialog").close()`);
      await on.isGone("dialog");
    }
    await on.press("#downloads", "Close");
    await on.isGone("#downloads");
  });

  test("violates no rule of its Content-Security-Policy, and sends no requests to other hosts", () => {
    expect(page.problems.filter((text) => !text.startsWith("Failed to load resource"))).toEqual([]);
    const external = page.requests.filter(
      (url) => !/^(?:blob:)?http:\/\/127\.0\.0\.1:/.test(url) && !url.startsWith("data:"),
    );
    expect(external).toEqual([]);
  });
});
