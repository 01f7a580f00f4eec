import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const SCRIPTS = path.join(import.meta.dirname, "../../scripts/test/withstand");
const run = promisify(execFile);

/** Short runs of the attacks; those of minutes and hours are in docs/security.md. */
test.each([
  ["channel.ts", "engines that forge, cut and flood their messages", 12, 4],
  ["faults.ts", "a system that refuses descriptors, memory and processes", 12, 4],
  ["hub.ts", "a hub that lies, stalls and breaks off", 60, 3],
  ["kills.ts", "engines that die at any moment", 6, 6],
  ["model-files.ts", "damaged model files", 12, 4],
  ["requests.ts", "damaged requests, small and large", 400, 5],
  ["shared-cache.ts", "daemons on one cache, killed while they write", 120, 3],
  ["soak.ts", "everything at once, for a while", 40, 3],
  ["structured.ts", "forms that models are bound to", 60, 3],
])("%s: %s break no promise", async (script, _, count, seconds) => {
  const flags = { seed: 1, count, seconds };
  const args = Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, String(value)]);
  // A broken promise is exit code 1, and rejects with what was found.
  const { stdout } = await run(process.execPath, [path.join(SCRIPTS, script), ...args]);
  expect(stdout).toMatch(/, 0 broken promises\n$/);
});
