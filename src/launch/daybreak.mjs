#!/usr/bin/env node
// @ts-check
// Finds the Node that runs the rest. This file and its imports are plain JavaScript that any Node since 18 can run.
import { fileURLToPath } from "node:url";
import { chooseRuntime, findModule } from "./choose-runtime.mjs";
import { handOver } from "./hand-over.mjs";
import { enableCompileCache } from "./keep-compiled-code.mjs";
import { machineProblem } from "./machine-problem.mjs";
import { isNode } from "./runtime.mjs";
import { skipZodLocales } from "./skip-languages.mjs";

const PLUG_N_PLAY =
  "Daybreak cannot run from the archives of Yarn's Plug'n'Play, which its engines may not read: write 'nodeLinker: node-modules' into .yarnrc.yml and run yarn install.";

const problem = process.versions["pnp"] ? PLUG_N_PLAY : machineProblem();
if (problem !== undefined) fail(problem);
else await run();

async function run() {
  const choice = await chooseRuntime();
  if (choice.problem !== undefined) return fail(choice.problem);
  if (choice.note !== undefined) process.stderr.write(`daybreak: ${choice.note}\n`);
  if (choice.binary === undefined) return await runHere();
  // Flags of another runtime are not valid for Node.
  const flags = isNode(process.versions) ? process.execArgv : [];
  await handOver(choice.binary, [...flags, fileURLToPath(import.meta.url), ...process.argv.slice(2)]);
}

async function runHere() {
  const entryPoint = findModule("../cli/main", import.meta.url);
  if (!entryPoint) {
    return fail("The program's files are missing: there should be a folder cli beside that of this file.");
  }
  ignoreDebuggerSignal();
  enableCompileCache();
  skipZodLocales();
  const { main } = await import(entryPoint.href);
  process.exitCode = await main(process.argv.slice(2));
}

/**
 * Prevents SIGUSR1 from opening Node's inspector, through which any user of this machine can take over the process. Any
 * process of the same account can send the signal, including a hostile engine. Node's flag --disable-sigusr1 works only on
 * the command line, so a running program cannot set it.
 */
function ignoreDebuggerSignal() {
  if (process.platform !== "win32") process.on("SIGUSR1", () => {});
}

/** @param {string} message */
function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exitCode = 1;
}
