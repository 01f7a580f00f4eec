#!/usr/bin/env node
import { spawnSync } from "node:child_process";
import { cpSync, rmSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { packageBrowser } from "./package-browser.ts";
import { ROOT } from "./project.ts";

const HELP = `Builds dist/, which the published package holds.

  node scripts/release/build.ts [--out FOLDER]

It mirrors the repository with JavaScript in place of TypeScript, so that every path from a module to another
file holds in both: configs/, models/, package.json and the engine's kernels are in it too. Types are not checked,
which takes five times as long: npm run typecheck does that.`;

/** Files of the API console's package for the page /docs; the page's other files are in src/ui/docs. */
const CONSOLE_FILES = [
  "swagger-ui-bundle.js",
  "swagger-ui-bundle.js.LICENSE.txt",
  "swagger-ui.css",
  "LICENSE",
  "NOTICE",
];

/** Files that modules read at run time, which the compiler does not copy. */
const RUNTIME_FILES = [
  "package.json",
  "configs",
  "models",
  "src/launch",
  "src/ui",
  "wasm/kernels.o",
  "wasm/LICENSE-llama.cpp",
];

const { values } = parseArgs({
  options: {
    help: { type: "boolean", short: "h" },
    out: { type: "string", default: path.join(ROOT, "dist") },
  },
});
if (values.help) console.log(HELP);
else await build(path.resolve(values.out));

/** Builds into a folder, whose previous content is removed. */
async function build(folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  const compiler = path.join(ROOT, "node_modules/typescript/bin/tsc");
  const project = path.join(ROOT, "tsconfig.build.json");
  const { status } = spawnSync(process.execPath, [compiler, "--project", project, "--outDir", folder], {
    stdio: "inherit",
  });
  if (status !== 0) throw new Error("The sources do not compile.");
  for (const file of RUNTIME_FILES) {
    cpSync(path.join(ROOT, file), path.join(folder, file), { recursive: true, filter: isNotTypeScript });
  }
  for (const file of CONSOLE_FILES) {
    cpSync(path.join(ROOT, "node_modules/swagger-ui-dist", file), path.join(folder, "src/ui/docs", file));
  }
  await packageBrowser(ROOT, path.join(folder, "browser"));
}

/** TypeScript beside these files is bundled for browsers. */
function isNotTypeScript(file: string): boolean {
  return !/\.tsx?$/.test(file);
}
