import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { TestProject } from "vitest/node";
import type { prepareEngine } from "../../src/engine/prepare-engine.ts";

/** Inside the repository, so that the program finds its packages. */
const PROGRAMS = fileURLToPath(new URL("../../node_modules/.cache/daybreak-test-program", import.meta.url));

const BUILD = fileURLToPath(new URL("../../scripts/release/build.ts", import.meta.url));

/** Longer than a run of tests takes: what is older is of one that was killed. */
const ABANDONED_MS = 60 * 60 * 1000;

/**
 * Builds the published program, and its engine, for the tests that start it; program.ts tells them where. The sources
 * would have their types stripped anew by each process: an engine may not write, so Node keeps nothing of that for it.
 */
export default async function setup(project: TestProject): Promise<() => void> {
  const program = path.join(PROGRAMS, String(process.pid));
  const build = async (): Promise<void> => {
    execFileSync(process.execPath, [BUILD, "--out", program], { stdio: "inherit" });
    const { href } = pathToFileURL(path.join(program, "src/engine/prepare-engine.js"));
    const built: { prepareEngine: typeof prepareEngine } = await import(href);
    await built.prepareEngine({ cacheDir: path.join(program, "cache"), kernels: "auto" });
  };
  await build();
  project.onTestsRerun(build);
  removeAbandoned();
  process.env["DAYBREAK_TEST_PROGRAM"] = program;
  return () => fs.rmSync(program, { recursive: true, force: true });
}

function removeAbandoned(): void {
  for (const folder of fs.readdirSync(PROGRAMS).map((name) => path.join(PROGRAMS, name))) {
    // Another run of tests may just have removed it.
    const stats = fs.statSync(folder, { throwIfNoEntry: false });
    if (stats && Date.now() - stats.mtimeMs > ABANDONED_MS)
      fs.rmSync(folder, { recursive: true, force: true });
  }
}
