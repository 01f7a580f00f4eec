#!/usr/bin/env node
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { ChromiumPage, findChromium } from "../../src/cli/browser/chromium.ts";

const HELP = `Draws the icons of the page as PNG from src/ui/icons/icon.svg, with Chromium.

  node scripts/release/make-icons.ts

The results are committed; run it after a change of the drawing.`;

const ICONS = new URL("../../src/ui/icons/", import.meta.url);

/** Systems cut these to their own shape, so they have no corners of their own. */
const WHOLE = [
  ["maskable-512.png", 512],
  ["icon-180.png", 180],
] as const;
const ROUNDED = [
  ["icon-192.png", 192],
  ["icon-512.png", 512],
] as const;

async function makeIcons(): Promise<void> {
  const chromium = findChromium();
  if (chromium === undefined) throw new Error("Chromium was not found; name its program in CHROMIUM.");
  const drawing = readFileSync(new URL("icon.svg", ICONS), "utf8");
  await using page = await ChromiumPage.open(chromium, "about:blank", {
    signal: AbortSignal.timeout(60_000),
  });
  const draw = async (name: string, size: number, svg: string): Promise<void> => {
    const source = `data:image/svg+xml;base64,${Buffer.from(svg).toString("base64")}`;
    const url = await page.evaluate(`(async () => {
      const image = new Image(${size}, ${size});
      image.src = ${JSON.stringify(source)};
      await image.decode();
      const canvas = document.createElement("canvas");
      canvas.width = canvas.height = ${size};
      canvas.getContext("2d").drawImage(image, 0, 0, ${size}, ${size});
      return canvas.toDataURL("image/png");
    })()`);
    writeFileSync(new URL(name, ICONS), Buffer.from(String(url).split(",")[1] ?? "", "base64"));
    console.log(fileURLToPath(new URL(name, ICONS)));
  };
  for (const [name, size] of ROUNDED) await draw(name, size, drawing);
  for (const [name, size] of WHOLE) await draw(name, size, drawing.replace('rx="112"', ""));
}

const { values } = parseArgs({ options: { help: { type: "boolean", short: "h" } } });
if (values.help) console.log(HELP);
else await makeIcons();
