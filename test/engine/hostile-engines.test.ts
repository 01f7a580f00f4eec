import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const ATTACK = fileURLToPath(new URL("../../scripts/test/withstand/channel.ts", import.meta.url));

test("engines that forge, cut and flood their messages end alone, while another's stream goes on", async () => {
  const flags = ["--seed", "1", "--seconds", "5", "--count", "12"];
  const { stdout } = await promisify(execFile)(process.execPath, [ATTACK, ...flags]);
  expect(stdout).toMatch(/, 0 broken promises\n$/);
});
