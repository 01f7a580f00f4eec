#!/usr/bin/env node
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { findChromium } from "../../test/support/launch-chromium.ts";
import { BrowserPage } from "../../test/support/browser-page.ts";
import { PageActions } from "../../test/support/page-actions.ts";
import { startDaemon } from "../../test/support/start-daemon.ts";

const HELP = `Makes the pictures of the page that the documentation shows: chat, models and monitor, on a phone and on a wide screen,
in light and dark.

  node scripts/docs/screenshots.ts [--out FOLDER]

  --out FOLDER   where they go (default docs/images)

Needs Chromium (the variable CHROMIUM names another). Answers come from the model that ships.`;

const SIZES = [
  { width: 390, height: 800 },
  { width: 1400, height: 900 },
] as const;
const SCHEMES = ["light", "dark"] as const;
const VIEWS = { chat: "", models: "#/models", monitor: "#/monitor" } as const;
const QUESTIONS = ["What is Daybreak?", "Which clients work with it?"];

const { values } = parseArgs({
  options: {
    out: { type: "string", default: fileURLToPath(new URL("../../docs/images/", import.meta.url)) },
    help: { type: "boolean", short: "h", default: false },
  },
});

async function main(): Promise<void> {
  const chromium = findChromium();
  if (chromium === undefined)
    throw new Error("There is no Chromium on this machine; set CHROMIUM to its path.");
  mkdirSync(values.out, { recursive: true });
  const daemon = await startDaemon();
  try {
    await using page = await BrowserPage.open(chromium, `${daemon.url}/ui/`);
    const on = new PageActions(page);
    await on.ready();
    await on.set({ temperature: "0" });
    for (const question of QUESTIONS) await on.ask(question);
    for (const [name, address] of Object.entries(VIEWS)) {
      for (const size of SIZES) {
        for (const scheme of SCHEMES) {
          await page.resize(size.width, size.height);
          await page.prefer(scheme);
          await on.enter(address);
          // Waits for what the view loads and draws.
          await page.until(`document.fonts.status === "loaded"`);
          await page.evaluate("new Promise((resolve) => setTimeout(resolve, 3000))");
          writeFileSync(
            path.join(values.out, `${name}-${scheme}-${size.width}.png`),
            await page.screenshot(),
          );
        }
      }
    }
  } finally {
    await daemon.stop();
  }
}

if (values.help) console.log(HELP);
else await main();
