import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { TestProject } from "vitest/node";
import { PROC } from "./proc.ts";

/** Inside the repository, so that the program finds its packages. */
const PROGRAMS = fileURLToPath(new URL("../../node_modules/.cache/daybreak-test-program", import.meta.url));

const REPOSITORY = fileURLToPath(new URL("../../", import.meta.url));

const BUILD = fileURLToPath(new URL("../../scripts/release/build.ts", import.meta.url));

/** Longer than a run of tests takes: what is older is of one that was killed. */
const ABANDONED_MS = 60 * 60 * 1000;

/**
 * Builds the published program, and its engine, for the tests that start it; program.ts tells them where. The sources
 * would have their types stripped anew by each process: an engine may not write, so Node keeps nothing of that for it.
 * They are what runs where the compiler does not start.
 */
export default function setup(project: TestProject): () => void {
  const kept = path.join(PROGRAMS, String(process.pid));
  const program = PROC.isMissing ? REPOSITORY : kept;
  const build = (): void => {
    if (!PROC.isMissing) execFileSync(process.execPath, [BUILD, "--out", program], { stdio: "inherit" });
    // In a process of its own: vitest would load the sources in its own way.
    const { href } = pathToFileURL(
      path.join(program, `src/engine/engine-image.${PROC.isMissing ? "ts" : "js"}`),
    );
    const options = JSON.stringify({ cacheDir: path.join(kept, "daybreak-test-cache"), kernels: "auto" });
    const prepare = `import { prepareEngine } from "${href}"; await prepareEngine(${options});`;
    execFileSync(process.execPath, ["--input-type=module", "--eval", prepare], { stdio: "inherit" });
  };
  build();
  project.onTestsRerun(build);
  removeAbandoned();
  process.env["DAYBREAK_TEST_KEPT"] = kept;
  if (!PROC.isMissing) process.env["DAYBREAK_TEST_PROGRAM"] = program;
  else
    console.warn("There is no /proc, without which the compiler does not start: the tests run the sources.");
  return () => fs.rmSync(kept, { recursive: true, force: true });
}

function removeAbandoned(): void {
  for (const folder of fs.readdirSync(PROGRAMS).map((name) => path.join(PROGRAMS, name))) {
    // Another run of tests may just have removed it.
    const stats = fs.statSync(folder, { throwIfNoEntry: false });
    if (stats && Date.now() - stats.mtimeMs > ABANDONED_MS)
      fs.rmSync(folder, { recursive: true, force: true });
  }
}
