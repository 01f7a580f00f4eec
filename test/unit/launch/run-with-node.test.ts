import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { isSuitableRuntime } from "../../../src/launch/runtime.mjs";
import { SYSTEM_NODE, SYSTEM_PATH } from "../../e2e/system-node.ts";

const ROOT = path.join(import.meta.dirname, "../../..");
const RUN = path.join(ROOT, "scripts/node.mjs");

test("every script of package.json starts through a file that finds a suitable Node", () => {
  const { scripts }: { scripts: Record<string, string> } = JSON.parse(
    readFileSync(path.join(ROOT, "package.json"), "utf8"),
  );
  const commands = Object.values(scripts).flatMap((script) => script.split(" && "));
  const finds = /^(npm run [\w:]+|node (src\/launch\/daybreak|scripts\/node)\.mjs)\b/;
  expect(commands.length).toBeGreaterThan(10);
  expect(commands.filter((command) => !finds.test(command))).toEqual([]);
});

test("a script and its child processes run under a suitable Node, independent of the system's Node", () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak run "));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const script = path.join(folder, "versions.mjs");
  writeFileSync(
    script,
    `import { execFileSync } from "node:child_process";
     const child = execFileSync("node", ["--version"], { encoding: "utf8" }).trim();
     console.log(JSON.stringify({ own: process.version, child, args: process.argv.slice(2) }));
     process.exitCode = 3;`,
  );
  const { stdout, stderr, status } = spawnSync(SYSTEM_NODE, [RUN, script, "a b", "--flag"], {
    encoding: "utf8",
    env: { ...process.env, PATH: SYSTEM_PATH },
  });
  expect(stderr).toBe("");
  const { own, child, args } = JSON.parse(stdout);
  expect(isSuitableRuntime({ node: own.slice(1) })).toBe(true);
  expect({ child, args, status }).toEqual({ child: own, args: ["a b", "--flag"], status: 3 });
});
