#!/usr/bin/env node
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { rolldown } from "rolldown";

const HELP = `Bundles the engine for browsers.

  node scripts/release/build-browser.ts [--out FOLDER]

Writes to dist/browser: daybreak.js, which a page imports, and engine-worker.js, which it starts.
npm ci does this in a clone, and npm run build does it for the package.`;

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** Writes the files that pages load into a folder. */
export async function buildBrowser(folder: string): Promise<void> {
  const bundle = await rolldown({
    cwd: ROOT,
    input: { daybreak: "src/tab/create-engine.ts", "engine-worker": "src/tab/engine-worker.ts" },
    platform: "browser",
  });
  const { output } = await bundle.generate({ format: "esm", minify: true, entryFileNames: "[name].js" });
  mkdirSync(folder, { recursive: true });
  for (const file of output) {
    writeFileSync(path.join(folder, file.fileName), file.type === "chunk" ? file.code : file.source);
  }
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      help: { type: "boolean", short: "h" },
      out: { type: "string", default: path.join(ROOT, "dist/browser") },
    },
  });
  if (values.help) console.log(HELP);
  else await buildBrowser(values.out);
}
