import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";

const SCRIPTS = path.join(import.meta.dirname, "../../scripts/test/withstand");
const run = promisify(execFile);

describe("a short run of the attacks on what daemons share, fetch and hold", () => {
  it.each([
    ["shared-cache.ts", 120, 3],
    ["hub.ts", 60, 3],
    ["soak.ts", 40, 3],
  ])("%s finds no broken promise", async (script, count, seconds) => {
    const args = [
      path.join(SCRIPTS, script),
      "--seed",
      "1",
      "--count",
      String(count),
      "--seconds",
      String(seconds),
    ];

    // A broken promise is exit code 1, and rejects with what was found.
    const { stdout } = await run(process.execPath, args);

    expect(stdout).toMatch(/, 0 broken promises\n$/);
  });
});
