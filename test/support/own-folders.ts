import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";

/**
 * Gives a run of tests its own folders for temporary files and caches, and removes them with all that killed tests have
 * left. Otherwise tests would write into the user's home, which may be read-only, and find a daemon that runs there.
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
