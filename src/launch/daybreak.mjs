#!/usr/bin/env node
// @ts-check
// This file and what it imports is plain JavaScript that any Node since 18 can run. It finds the Node that runs the rest.
import { fileURLToPath } from "node:url";
import { findEntryPoint } from "./entry-point.mjs";
import { handOver } from "./hand-over.mjs";
import { ignoreDebuggerSignal } from "./ignore-debugger-signal.mjs";
import { keepCompiledCode } from "./keep-compiled-code.mjs";
import { machineProblem, wasmProblem } from "./machine-problem.mjs";
import { findRuntime, isNode, runtimeSuits } from "./runtime.mjs";
import { skipLanguages } from "./skip-languages.mjs";

const PLUG_N_PLAY =
  "Daybreak cannot run from the archives of Yarn's Plug'n'Play, which its engines may not read: write 'nodeLinker: node-modules' into .yarnrc.yml and run yarn install.";

const problem = process.versions["pnp"] ? PLUG_N_PLAY : machineProblem();
if (problem !== undefined) fail(problem);
else if (runtimeSuits(process.versions)) await runHere();
else await runUnderAnother();

async function runHere() {
  const lacking = wasmProblem();
  if (lacking !== undefined) return fail(lacking);
  const entryPoint = findEntryPoint(import.meta.url);
  if (!entryPoint) {
    return fail("The program's files are missing: there should be a folder cli beside that of this file.");
  }
  ignoreDebuggerSignal();
  keepCompiledCode();
  skipLanguages();
  const { main } = await import(entryPoint.href);
  process.exitCode = await main(process.argv.slice(2));
}

async function runUnderAnother() {
  const runtime = findRuntime();
  if ("problem" in runtime) return fail(runtime.problem);
  const self = fileURLToPath(import.meta.url);
  // The flags of another runtime are not Node's.
  const flags = isNode(process.versions) ? process.execArgv : [];
  await handOver(runtime.binary, [...flags, self, ...process.argv.slice(2)]);
}

/** @param {string} message */
function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exitCode = 1;
}
