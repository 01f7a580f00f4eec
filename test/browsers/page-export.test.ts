import { appendFileSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findChromium } from "../support/launch-chromium.ts";
import { BrowserPage } from "../support/browser-page.ts";
import { type FixtureHub, startFixtureHub } from "../support/fixture-hub.ts";
import { PageActions } from "../support/page-actions.ts";
import { need } from "../support/need.ts";
import { startStaticServer, type StaticServer } from "../support/static-server.ts";
import { runCli } from "../unit/cli/run-cli.ts";

const chromium = findChromium();
const CHROMIUM = need("Chromium", chromium !== undefined);

const MODEL = fileURLToPath(new URL("../../models/daybreak-mini.gguf", import.meta.url));
const QUESTION = "What is Daybreak?";

const folders: string[] = [];
function makeFolder(): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-export-"));
  folders.push(folder);
  return folder;
}
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true });
});

describe("daybreak ui export", () => {
  test("rejects a folder that contains other files", async () => {
    const folder = makeFolder();
    writeFileSync(path.join(folder, "thesis.txt"), "");
    const { code, stderr } = await runCli(["ui", "export", folder]);
    expect(code).toBe(2);
    expect(stderr).toContain("has other files in it");
  });

  test("rejects servers that are not origins", async () => {
    for (const option of [
      ["--connect", "https://a.example/path"],
      ["--hub", "mirror"],
    ])
      expect((await runCli(["ui", "export", makeFolder(), ...option])).code).toBe(2);
  });
});

describe.skipIf(CHROMIUM.isMissing)(
  `the exported page, on a host that sends no headers, below a path${CHROMIUM.note}`,
  () => {
    const site = makeFolder();
    let hub: FixtureHub;
    let server: StaticServer;
    let page: BrowserPage;
    let on: PageActions;
    const write = async (folder: string, ...more: string[]): Promise<void> => {
      const { code, stderr } = await runCli([
        "ui",
        "export",
        folder,
        "--hub",
        hub.url,
        "--connect",
        hub.storageUrl,
        ...more,
      ]);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    };
    beforeAll(async () => {
      const files = { "tiny-Q8_0.gguf": readFileSync(MODEL), "README.md": Buffer.from("A tiny model.") };
      hub = await startFixtureHub({ repos: { "owner/tiny": { files } } });
      await write(site);
      server = await startStaticServer(site, { under: "/repo", isIsolated: false });
      page = await BrowserPage.open(chromium!, `${server.url}/`);
      on = new PageActions(page);
    });
    afterAll(async () => {
      await page?.[Symbol.asyncDispose]();
      await server?.[Symbol.asyncDispose]();
      await hub?.close();
    });

    const reload = async (): Promise<void> => {
      await page.evaluate("globalThis.isOld = true; location.reload()");
      await on.until(`globalThis.isOld === undefined && document.getElementById("prompt")`);
    };
    const stored = (name: string): Promise<void> =>
      on.until(`[...document.querySelectorAll("#stored h3")].some(({ textContent }) => textContent === "${name}")
      && !document.getElementById("storing")`);
    const ask = async (): Promise<string> => {
      await on.enter("");
      await on.click("#new");
      await on.until(`document.getElementById("model").value`);
      await on.set({ temperature: "0" });
      return await on.ask(QUESTION);
    };

    test("reloads once, and then has threads", async () => {
      await on.until(`crossOriginIsolated && document.getElementById("prompt")`);
      expect(await on.textOf("#connection")).toBe("");
      expect(await on.textOf("nav")).toBe("ChatModels");
      expect(await on.count("#daemons, #in-tab, #experiment")).toBe(0);
      expect(page.requests.filter((url) => /\/api\/|\/health/.test(url))).toEqual([]);
    });

    test("downloads a model from the hub, and runs it", async () => {
      await on.enter("#/models");
      await on.type("#from-hub input", "hf:owner/tiny");
      await page.evaluate(`document.getElementById("from-hub").requestSubmit()`);
      await stored("tiny-Q8_0");
      expect(await ask()).toMatch(/^Daybreak/);
      expect(await on.textOf("#model")).toBe("tiny-Q8_0 (in this browser)");
    });

    test("reports a spec that matches no model", async () => {
      await on.enter("#/models");
      await on.type("#from-hub input", "owner/tiny:Q2_K");
      await page.evaluate(`document.getElementById("from-hub").requestSubmit()`);
      await on.until(`document.getElementById("problem").textContent !== ""`);
      expect(await on.textOf("#problem")).toContain(
        "owner/tiny has no GGUF model of that name or quantization",
      );
      await on.click("#problem button");
    });

    test("deletes models, and runs a model from a local file", async () => {
      await on.press("#stored", "Delete …");
      await on.until(`document.querySelector("dialog[open]")`);
      await on.press("dialog", "Delete");
      await on.until(`document.querySelectorAll("#stored li").length === 0`);
      await page.chooseFile("#gguf", MODEL);
      await stored("daybreak-mini");
      expect(await ask()).toMatch(/^Daybreak/);
      expect(await on.textOf("#model")).toBe("daybreak-mini (in this browser)");
    });

    test("uses a new version at the next load only if all its files are complete", async () => {
      const hubOf = `document.querySelector('meta[http-equiv="content-security-policy"]').content.includes("new.example")`;
      await write(site, "--connect", "https://new.example");
      await reload();
      expect(await page.evaluate(hubOf)).toBe(true);
      // Simulates a host that has only some files of the next version.
      appendFileSync(path.join(site, "page.css"), "body { --next: 1 }");
      writeFileSync(
        path.join(site, "files.json"),
        readFileSync(path.join(site, "files.json"), "utf8").replace(/"version": ".*"/, `"version": "next"`),
      );
      await reload();
      const next = `getComputedStyle(document.body).getPropertyValue("--next")`;
      expect(await page.evaluate(next)).toBe("");
      await write(site);
      await reload();
      expect(await page.evaluate(hubOf)).toBe(false);
    });

    test("runs a tool in its frame", async () => {
      const result = await page.evaluate(`new Promise(async (resolve) => {
      const frame = document.createElement("iframe");
      frame.setAttribute("sandbox", "allow-scripts");
      frame.srcdoc = await (await fetch("tool-frame.html")).text();
      addEventListener("message", ({ source, data }) => {
        if (source !== frame.contentWindow) return;
        if (data === "ready") source.postMessage({ code: "return args.a + 1", args: { a: 41 } }, "*");
        else resolve(data.result);
      });
      document.body.append(frame);
    })`);
      expect(result).toBe("42");
    });

    test("violates no rule of its Content-Security-Policy", () => {
      expect(page.problems).toEqual([]);
    });

    test("opens and answers while its host is down", async () => {
      await server[Symbol.asyncDispose]();
      await reload();
      expect(await page.evaluate("crossOriginIsolated")).toBe(true);
      expect(await ask()).toMatch(/^Daybreak/);
    });

    test("runs on one thread with a note if there is no service worker", async () => {
      const withoutWorker = makeFolder();
      cpSync(site, withoutWorker, { recursive: true });
      rmSync(path.join(withoutWorker, "sw.js"));
      await using other = await startStaticServer(withoutWorker, { isIsolated: false });
      await using tab = await page.openTab(`${other.url}/`);
      const there = new PageActions(tab);
      await there.until(`document.getElementById("connection")?.textContent.includes("one thread")`);
      await there.enter("#/models");
      await tab.chooseFile("#gguf", MODEL);
      await there.until(`document.querySelector("#stored h3")`);
      await there.enter("");
      await there.until(`document.getElementById("model").value`);
      await there.set({ temperature: "0", max_tokens: "8" });
      expect(await there.ask(QUESTION)).toMatch(/^Daybreak/);
      expect(await tab.evaluate("crossOriginIsolated")).toBe(false);
    });
  },
);
