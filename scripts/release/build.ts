#!/usr/bin/env node
import { spawnSync } from "node:child_process";
import { cpSync, rmSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const HELP = `Builds dist/, the JavaScript of the published package, from src/.

  node scripts/release/build.ts

dist/ mirrors src/, so that paths from a module to files beside src/ (configs, models, package.json) hold in both.
src/launch is published as it is: it runs before a Node is found that can run the rest.`;

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const [SRC, DIST] = [path.join(ROOT, "src"), path.join(ROOT, "dist")];
/** What tsc makes something of; everything else in src/ belongs to the package as it is. */
const COMPILED = /\.ts$/;

const { values } = parseArgs({ options: { help: { type: "boolean", short: "h" } } });
if (values.help) {
  console.log(HELP);
} else {
  rmSync(DIST, { recursive: true, force: true });
  const tsc = spawnSync(
    process.execPath,
    [path.join(ROOT, "node_modules/typescript/bin/tsc"), "--project", path.join(ROOT, "tsconfig.build.json")],
    { stdio: "inherit" },
  );
  if (tsc.status === 0) copyAssets();
  process.exitCode = tsc.status ?? 1;
}

function copyAssets(): void {
  cpSync(SRC, DIST, {
    recursive: true,
    filter: (source) => source !== path.join(SRC, "launch") && !COMPILED.test(source),
  });
}
