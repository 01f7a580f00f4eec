#!/usr/bin/env node
import { spawnSync } from "node:child_process";
import { cpSync, rmSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { packageBrowser } from "./package-browser.ts";

const HELP = `Builds dist/, which the published package holds.

  node scripts/release/build.ts

dist/ mirrors the repository with JavaScript in place of TypeScript, so that every path from a module to another
file holds in both: configs/, models/, package.json and the engine's kernels are in it too. Types are not checked,
which takes five times as long: npm run typecheck does that.`;

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** What the package of the API console brings to the page /docs; the page's own files are in src/ui/docs. */
const CONSOLE_FILES = [
  "swagger-ui-bundle.js",
  "swagger-ui-bundle.js.LICENSE.txt",
  "swagger-ui.css",
  "LICENSE",
  "NOTICE",
];

/** What modules read at run time; the compiler sees none of it. */
const RUNTIME_FILES = [
  "package.json",
  "configs",
  "models",
  "src/launch",
  "src/ui",
  "wasm/kernels.o",
  "wasm/LICENSE-llama.cpp",
];

const { values } = parseArgs({ options: { help: { type: "boolean", short: "h" } } });
if (values.help) {
  console.log(HELP);
} else {
  rmSync(path.join(ROOT, "dist"), { recursive: true, force: true });
  const compiler = path.join(ROOT, "node_modules/typescript/bin/tsc");
  const { status } = spawnSync(
    process.execPath,
    [compiler, "--project", path.join(ROOT, "tsconfig.build.json")],
    {
      stdio: "inherit",
    },
  );
  if (status === 0) {
    for (const file of RUNTIME_FILES) {
      cpSync(path.join(ROOT, file), path.join(ROOT, "dist", file), {
        recursive: true,
        // Bundled for browsers.
        filter: (source) => !source.endsWith(".ts"),
      });
    }
    for (const file of CONSOLE_FILES) {
      cpSync(
        path.join(ROOT, "node_modules/swagger-ui-dist", file),
        path.join(ROOT, "dist/src/ui/docs", file),
      );
    }
    await packageBrowser(ROOT, path.join(ROOT, "dist/browser"));
  }
  process.exitCode = status ?? 1;
}
