import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BrowserPage } from "../support/browser-page.ts";
import { findChromium } from "../support/launch-chromium.ts";
import { need } from "../support/need.ts";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";

const chromium = findChromium();
const CHROMIUM = need("Chromium", chromium !== undefined);

describe.skipIf(CHROMIUM.isMissing)(`the API console at /docs in Chromium${CHROMIUM.note}`, () => {
  let daemon: TestDaemon;
  let page: BrowserPage;
  beforeAll(async () => {
    daemon = await startDaemon({ args: ["--models-load", ""] });
    page = await BrowserPage.open(chromium!, `${daemon.url}/docs`);
    await page.until('document.querySelectorAll(".opblock").length > 0');
  });
  afterAll(async () => {
    await page?.[Symbol.asyncDispose]();
    await daemon?.stop();
  });

  test("shows every operation of the OpenAPI document", async () => {
    const document: { paths: Record<string, object> } = await (
      await fetch(`${daemon.url}/openapi.json`)
    ).json();
    const operations = Object.values(document.paths).flatMap((methods) => Object.keys(methods));
    expect(await page.evaluate('document.querySelectorAll(".opblock").length')).toBe(operations.length);
  });

  test("calls GET /health and shows the response", async () => {
    const health = "document.querySelector('[id$=\"-get_health\"]')";
    await page.evaluate(`${health}.querySelector(".opblock-summary-control").click()`);
    await page.until(`${health}.querySelector(".execute")`);
    await page.evaluate(`${health}.querySelector(".execute").click()`);
    await page.until(`${health}.querySelector(".live-responses-table .response-col_status")`);
    const shown = await page.evaluate(`${health}.querySelector(".live-responses-table").innerText`);
    expect(shown).toMatch(/200[\s\S]*"status": "ok"/);
    expect(page.requests).toContain(`${daemon.url}/health`);
  });

  test("sends no requests to other hosts, and violates no rule of its Content-Security-Policy", () => {
    const external = page.requests.filter(
      (url) => !url.startsWith(`${daemon.url}/`) && !url.startsWith("data:"),
    );
    expect(external).toEqual([]);
    expect(page.problems).toEqual([]);
  });

  test("runs no inline scripts", async () => {
    await page.evaluate(`
      const script = document.createElement("script");
      script.textContent = "globalThis.hasRun = true";
      document.body.append(script);`);
    await expect.poll(() => page.problems.splice(0)).toEqual([expect.stringContaining("inline script")]);
    expect(await page.evaluate("globalThis.hasRun")).toBeUndefined();
  });
});
