import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { EXIT } from "../../../src/cli/cli-error.ts";
import { isErrorCode } from "../../../src/errors/error-codes.ts";
import { runCli } from "./run-cli.ts";

const ROOT = path.join(import.meta.dirname, "../../..");
const text = readFileSync(path.join(ROOT, "docs/cli.md"), "utf8");

describe("docs/cli.md", () => {
  it("lists every command", async () => {
    const { stdout } = await runCli(["--help"]);
    const commands = [...stdout.matchAll(/^ {2}([a-z]+)[ |]/gm)].map(([, name]) => name ?? "");
    const documented = [...text.matchAll(/^\| `daybreak ([a-z]+)/gm)].map(([, name]) => name ?? "");
    expect([...documented, "help"].toSorted()).toEqual(commands.toSorted());
  });

  it("lists every exit code", () => {
    for (const code of Object.values(EXIT)) expect(text).toMatch(new RegExp(`^\\| ${code} \\|`, "m"));
  });

  it("lists every error code of the command line", () => {
    const files = globSync("src/cli/**/*.ts", { cwd: ROOT });
    const source = files.map((file) => readFileSync(path.join(ROOT, file), "utf8")).join("\n");
    const thrown = [...source.matchAll(/CliError\(\s*[^"]*?,\s*"([a-z_]+)"/g)];
    const own = [...new Set(thrown.map(([, code = ""]) => code))].filter((code) => !isErrorCode(code));
    expect(own.length).toBeGreaterThan(15);
    expect(own.filter((code) => !text.includes(`\`${code}\``))).toEqual([]);
  });
});
