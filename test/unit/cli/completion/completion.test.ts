import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { unless } from "../../../support/need.ts";
import { runCli } from "../run-cli.ts";

/** Fake program that lists models, and a completion of a line as bash runs it. */
const BASH_HARNESS = `
daybreak() { [ "$1" = list ] && printf 'tiny\\nqwen3:0.6b\\nqwen3:4b\\n'; }
COMP_WORDBREAKS=' :='
COMP_LINE=$1 COMP_POINT=\${#1}
_daybreak
printf '%s\\n' "\${COMPREPLY[@]}"
`;

async function scriptFor(shell: string): Promise<string> {
  const { code, stdout } = await runCli(["completion", shell]);
  expect(code).toBe(0);
  return stdout;
}

describe.skipIf(process.platform === "win32")("the bash script", () => {
  it.each([
    ["commands", "daybreak l", ["launch", "list", "ls", "load"]],
    ["options", "daybreak run --te", ["--temperature"]],
    ["choices of an option", "daybreak serve --log-level e", ["error"]],
    ["choices of an argument", "daybreak completion f", ["fish"]],
    ["models as argument", "daybreak rm tiny q", ["qwen3:0.6b", "qwen3:4b"]],
    ["models as value of an option", "daybreak run -m t", ["tiny"]],
    ["the part behind a colon, at which bash splits words", "daybreak show qwen3:", ["0.6b", "4b"]],
    ["nothing for free text", "daybreak run t", [""]],
  ])("completes %s", async (_what, line, expected) => {
    const script = (await scriptFor("bash")) + BASH_HARNESS;
    const { stdout, stderr } = spawnSync("bash", ["--norc", "-c", script, "bash", line], {
      encoding: "utf8",
      // bash warns about a locale that is not installed.
      env: { ...process.env, LC_ALL: "C" },
    });
    expect(stderr).toBe("");
    expect(stdout.trimEnd().split("\n")).toEqual(expected);
  });
});

describe.each(["zsh", "fish"])("the %s script", (shell) => {
  const SHELL = unless(spawnSync(shell, ["-c", "true"]).error === undefined, `no ${shell}`);

  it.skipIf(SHELL.isMissing)(`is valid syntax${SHELL.note}`, async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-completion-"));
    const file = path.join(folder, shell);
    writeFileSync(file, await scriptFor(shell));
    const { status, stderr } = spawnSync(shell, ["-n", file], { encoding: "utf8" });
    rmSync(folder, { recursive: true });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  });

  it("contains every command", async () => {
    const script = await scriptFor(shell);
    const { stdout: help } = await runCli(["--help"]);
    const commands = [...help.matchAll(/^ {2}([a-z]+)[ |]/gm)].map(([, name]) => name ?? "");
    expect(commands.length).toBeGreaterThan(10);
    for (const command of commands) expect(script).toContain(command);
  });
});

it("exits with 2 for an unknown shell", async () => {
  expect((await runCli(["completion", "csh"])).code).toBe(2);
});
