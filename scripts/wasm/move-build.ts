#!/usr/bin/env node
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { MEMORY_CELLS } from "../../wasm/memory-cells.ts";
import { findFacts, type Finding } from "./find-facts.ts";
import { factsHeader, factsModule, PINNED_FACTS } from "./print-facts.ts";
import { fetchVersion, installedFolder, readPackage, type StockModule } from "./stock-module.ts";

const HELP = `Finds what Daybreak knows of llama.cpp's WebAssembly again in another version of @wllama/wllama.

  node scripts/wasm/move-build.ts [VERSION] [options]

  VERSION           as the registry names it (default: the one that is installed)
  --folder FOLDER   an unpacked package, in place of a version
  --write           write wasm/llama-cpp-build.ts and wasm/kernels/llama-cpp-build.h with what was found
  --header          only write that header, from wasm/llama-cpp-build.ts and wasm/memory-cells.ts as they are
  --all             list what is the same, too

Says of each function, address, offset and number whether it is the same, has moved, has changed (look at it) or is gone.
Exits with 1 when something has changed or is gone. What is gone is left out of the file: the compiler then names the
places that need it. wasm/README.md says what else is to be done.`;

const ROOT = path.join(import.meta.dirname, "..", "..");
const FACTS_FILE = path.join(ROOT, "wasm", "llama-cpp-build.ts");
const HEADER_FILE = path.join(ROOT, "wasm", "kernels", "llama-cpp-build.h");

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    folder: { type: "string" },
    write: { type: "boolean", default: false },
    header: { type: "boolean", default: false },
    all: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  },
});

if (values.help) console.log(HELP);
else if (values.header) await writeFile(HEADER_FILE, factsHeader(PINNED_FACTS, MEMORY_CELLS));
else await move();

async function move(): Promise<void> {
  const temporary = await mkdtemp(path.join(os.tmpdir(), "daybreak-wllama-"));
  try {
    const after = await readAfter(temporary);
    const { facts, findings } = findFacts(PINNED_FACTS, await readBefore(temporary, after), after);
    console.log(
      `${PINNED_FACTS.llamaCppBuild} in ${PINNED_FACTS.wllamaVersion} → ${after.llamaCpp} in ${after.version}`,
    );
    console.log(report(findings));
    if (values.write) {
      await writeFile(FACTS_FILE, factsModule(facts));
      await writeFile(HEADER_FILE, factsHeader(facts, MEMORY_CELLS));
    }
    if (findings.some(({ state }) => state === "changed" || state === "gone")) process.exitCode = 1;
  } finally {
    await rm(temporary, { recursive: true });
  }
}

async function readAfter(temporary: string): Promise<StockModule> {
  const [version] = positionals;
  if (values.folder !== undefined) return readPackage(values.folder);
  if (version === undefined) return readPackage(installedFolder());
  return readPackage(await fetchVersion(version, await mkdtemp(path.join(temporary, "after-"))));
}

/** The package that the facts are of: the one that is installed, as long as it is that one. */
async function readBefore(temporary: string, after: StockModule): Promise<StockModule> {
  const { stockSha256, wllamaVersion } = PINNED_FACTS;
  if (after.sha256 === stockSha256) return after;
  const installed = await readPackage(installedFolder());
  if (installed.sha256 === stockSha256) return installed;
  return readPackage(await fetchVersion(wllamaVersion, await mkdtemp(path.join(temporary, "before-"))));
}

function report(findings: readonly Finding[]): string {
  const states = Map.groupBy(findings, ({ state }) => state);
  const counts = (["same", "moved", "changed", "gone"] as const).map(
    (state) => `${states.get(state)?.length ?? 0} ${state}`,
  );
  const listed = findings.filter(({ state }) => values.all || state !== "same");
  return [counts.join(", "), ...listed.map(({ what, state, detail }) => `${state}: ${what}: ${detail}`)].join(
    "\n",
  );
}
