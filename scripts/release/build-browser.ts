#!/usr/bin/env node
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { rolldown } from "rolldown";

const HELP = `Bundles the engine for browsers.

  node scripts/release/build-browser.ts --out FOLDER

Writes daybreak.js, which a page imports, engine-worker.js and store-worker.js, which it starts, and experiments.js, the script of a page of
the daemon. npm run build does this for the
package; in a clone, the daemon does it when a page first asks for them.`;

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** Each is one file, which needs no other. */
const ENTRIES = {
  "daybreak.js": "src/tab/browser-entry.ts",
  "engine-worker.js": "src/tab/engine-worker.ts",
  "store-worker.js": "src/tab/store/blob-worker.ts",
  "experiments.js": "src/ui/experiments/experiments-page.ts",
};

/** Writes the files that pages load into a folder. */
export async function buildBrowser(folder: string): Promise<void> {
  for (const [name, input] of Object.entries(ENTRIES)) {
    const bundle = await rolldown({ cwd: ROOT, input, platform: "browser" });
    await bundle.write({ file: path.join(folder, name), format: "esm", minify: true });
  }
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      help: { type: "boolean", short: "h" },
      out: { type: "string" },
    },
  });
  if (values.help || values.out === undefined) console.log(HELP);
  else await buildBrowser(values.out);
}
