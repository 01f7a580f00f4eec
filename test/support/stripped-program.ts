import { createHash } from "node:crypto";
import fs from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { TestProject } from "vitest/node";
import { buildBrowser } from "../../scripts/release/build-browser.ts";
import type { prepareEngine } from "../../src/engine/prepare-engine.ts";

/**
 * The program with its types stripped once, as Node would strip them anew in each process: an engine may not write, so
 * Node keeps nothing of what it does for it, and that is a sixth of its start. Tests of what a process may read, of the
 * command line and of the package run the sources, or what is published.
 */

const REPOSITORY = fileURLToPath(new URL("../../", import.meta.url));

/** What the program is made of. */
const PARTS = ["package.json", "configs", "models", "src", "wasm"];

/** Programs of other sources are kept for so long, for tests that still run them. */
const KEPT_MS = 60 * 60 * 1000;

/** A relative import of a TypeScript file. */
const IMPORT = /(["'])(\.\.?\/[^"'\n]+)\.ts\1/g;

/** Makes the program and its engine before the first test that runs them; program.ts tells where they are. */
export default async function setup(project: TestProject): Promise<void> {
  await provideProgram();
  project.onTestsRerun(provideProgram);
}

async function provideProgram(): Promise<void> {
  const files = PARTS.flatMap(filesOf);
  const hash = createHash("sha256").update(process.version);
  for (const file of files) hash.update(`${file}\0`).update(fs.readFileSync(path.join(REPOSITORY, file)));
  const programs = path.join(REPOSITORY, "node_modules", ".cache", "daybreak-test-program");
  const program = path.join(programs, hash.digest("hex").slice(0, 16));
  if (!fs.existsSync(program)) await make(program, files);
  fs.utimesSync(program, new Date(), new Date());
  for (const each of fs.readdirSync(programs).map((name) => path.join(programs, name))) {
    // Another run of tests may just have removed or renamed it.
    const stats = fs.statSync(each, { throwIfNoEntry: false });
    if (stats && Date.now() - stats.mtimeMs > KEPT_MS) fs.rmSync(each, { recursive: true, force: true });
  }
  process.env["DAYBREAK_TEST_PROGRAM"] = program;
}

/** Nobody sees a part of it, also when two runs of tests make it at once. */
async function make(program: string, files: readonly string[]): Promise<void> {
  const temporary = `${program}.${process.pid}.tmp`;
  for (const file of files) {
    const to = path.join(temporary, file.replace(/\.ts$/, ".js"));
    fs.mkdirSync(path.dirname(to), { recursive: true });
    const from = path.join(REPOSITORY, file);
    if (file.endsWith(".ts")) fs.writeFileSync(to, strip(fs.readFileSync(from, "utf8")));
    else fs.copyFileSync(from, to);
  }
  const { href } = pathToFileURL(path.join(temporary, "src/engine/prepare-engine.js"));
  const made: { prepareEngine: typeof prepareEngine } = await import(href);
  await made.prepareEngine({ cacheDir: path.join(temporary, "cache"), kernels: "auto" });
  await buildBrowser(path.join(temporary, "browser"));
  try {
    fs.renameSync(temporary, program);
  } catch (error) {
    fs.rmSync(temporary, { recursive: true });
    if (!fs.existsSync(program)) throw error;
  }
}

function strip(source: string): string {
  return stripTypeScriptTypes(source).replaceAll(IMPORT, "$1$2.js$1");
}

/** All files of a part, in the same order everywhere. */
function filesOf(part: string): string[] {
  if (!fs.statSync(path.join(REPOSITORY, part)).isDirectory()) return [part];
  return fs
    .readdirSync(path.join(REPOSITORY, part), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(REPOSITORY, path.join(entry.parentPath, entry.name)))
    .toSorted();
}
