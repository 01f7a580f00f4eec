import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const SCRIPTS = path.join(import.meta.dirname, "../../scripts/test/withstand");
const run = promisify(execFile);

/** A hub that stalls is given up after a minute. */
const LONGEST_RUN_MS = 240_000;

/** Short runs of the attacks; those of minutes and hours are in docs/security.md. */
test.each([
  ["channel.ts", "engines that forge, cut and flood their messages", 6, 2],
  ["faults.ts", "a system that refuses descriptors, memory and processes", 6, 2],
  ["hub.ts", "a hub that lies, stalls and breaks off", 20, 2],
  ["kills.ts", "engines that die at any moment", 3, 4],
  ["model-files.ts", "damaged model files", 8, 3],
  ["requests.ts", "damaged requests, small and large", 200, 3],
  ["shared-cache.ts", "daemons on one cache, killed while they write", 40, 2],
  ["soak.ts", "everything at once, for a while", 20, 2],
  ["structured.ts", "forms that models are bound to", 30, 2],
])(
  "%s: %s break no promise",
  async (script, _, count, seconds) => {
    const flags = { seed: 2, count, seconds };
    const args = Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, String(value)]);
    // A broken promise is exit code 1, and rejects with what was found.
    const { stdout } = await run(process.execPath, [path.join(SCRIPTS, script), ...args]);
    expect(stdout).toMatch(/, 0 broken promises\n$/);
  },
  LONGEST_RUN_MS,
);
