#!/usr/bin/env node
// @ts-check
// Plain JavaScript for every Node from 18 on: npm runs it after npm ci in a clone, where it builds what browsers load.
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { findRuntime, runtimeSuits } from "../../src/launch/runtime.mjs";

const BUILD = fileURLToPath(new URL("./build-browser.ts", import.meta.url));

/** @returns {string | undefined} why nothing was built */
function build() {
  try {
    createRequire(import.meta.url).resolve("rolldown");
  } catch {
    return "the packages for development are not installed";
  }
  const runtime = runtimeSuits(process.versions) ? { binary: process.execPath } : findRuntime();
  if ("problem" in runtime) return runtime.problem;
  const { status } = spawnSync(runtime.binary, [BUILD], { stdio: "inherit" });
  return status === 0 ? undefined : "the build failed";
}

const problem = build();
// The daemon does without it, so an installation is not to fail of it.
if (problem !== undefined) {
  process.stderr.write(`The engine for browsers was not built (${problem}); later: npm run build:browser\n`);
}
