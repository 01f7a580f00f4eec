#!/usr/bin/env node
import { copyFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { rolldown } from "rolldown";

const HELP = `Bundles the engine for browsers.

  node scripts/release/build-browser.ts --out FOLDER

Writes daybreak.js, which a page imports, engine-worker.js and store-worker.js, which it starts, engine-compat.js,
llama.cpp's script for older browsers, pdf-worker.js, which reads PDF files for the page, and the scripts of the daemon's
own pages: experiments.js, sw.js, which keeps them in the browser, and page.js with the parts that it loads when they are
needed (page-*.js). npm run build does this for the package; in a clone, the daemon
does it when a page first asks for them.`;

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** Oldest ECMAScript version of browsers of the last years; Safari has no `using`. */
const TARGET = "es2023";

const COMMON = { cwd: ROOT, platform: "browser", transform: { target: TARGET } } as const;

/** Each is one file, which needs no other. */
const ENTRIES = {
  "daybreak.js": "src/tab/browser-entry.ts",
  "engine-worker.js": "src/tab/engine-worker.ts",
  "store-worker.js": "src/tab/store/blob-worker.ts",
  "experiments.js": "src/ui/experiments/experiments-page.ts",
  "sw.js": "src/ui/service-worker/service-worker.ts",
};

/** Comes in parts: what not everybody needs is loaded when it is. */
const PAGE = "src/ui/page/page.tsx";

/** llama.cpp for browsers without memory64 or JSPI. */
export const COMPAT = path.join(ROOT, "node_modules/@wllama/wllama-compat/wasm");

/** Reads PDF files in the page. */
const PDF_WORKER = path.join(ROOT, "node_modules/pdfjs-dist/legacy/build/pdf.worker.min.mjs");

/** Writes the files that pages load into a folder. */
export async function buildBrowser(folder: string): Promise<void> {
  for (const [name, input] of Object.entries(ENTRIES)) {
    const bundle = await rolldown({ ...COMMON, input });
    await bundle.write({ file: path.join(folder, name), format: "esm", minify: true, codeSplitting: false });
  }
  const page = await rolldown({ ...COMMON, input: PAGE });
  await page.write({
    dir: folder,
    format: "esm",
    minify: true,
    entryFileNames: "page.js",
    chunkFileNames: "page-[name].js",
  });
  copyFileSync(path.join(COMPAT, "wllama.js"), path.join(folder, "engine-compat.js"));
  copyFileSync(PDF_WORKER, path.join(folder, "pdf-worker.js"));
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
