import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";

/**
 * Gives a run of tests folders of its own for temporary files and for caches, and removes them: also what a test that was
 * ended has left. Else tests would write into the home of whoever runs them, which may be read-only, and find a daemon
 * that runs there.
 */
export default function setup(): (() => void) | undefined {
  // Another project of the same run has them already.
  if (process.env["DAYBREAK_TEST_FOLDER"] !== undefined) return undefined;
  const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-tests-"));
  process.env["DAYBREAK_TEST_FOLDER"] = folder;
  const cache = path.join(folder, "cache");
  mkdirSync(cache);
  // The first is for Windows; the others are for the rest.
  for (const name of ["TEMP", "TMP", "TMPDIR"]) process.env[name] = folder;
  process.env["XDG_CACHE_HOME"] = cache;
  delete process.env["XDG_RUNTIME_DIR"];
  return () => rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
}
