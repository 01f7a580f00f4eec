import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { EXIT } from "../../../src/cli/exit-codes.ts";
import { runCli } from "./run-cli.ts";

const text = readFileSync(new URL("../../../docs/cli.md", import.meta.url), "utf8");

describe("docs/cli.md", () => {
  it("has every command", async () => {
    const { stdout } = await runCli(["--help"]);
    const commands = [...stdout.matchAll(/^ {2}([a-z]+)[ |]/gm)].map(([, name]) => name ?? "");
    const documented = [...text.matchAll(/^\| `daybreak ([a-z]+)/gm)].map(([, name]) => name ?? "");
    expect([...documented, "help"].toSorted()).toEqual(commands.toSorted());
  });

  it("has every exit code", () => {
    for (const code of Object.values(EXIT)) expect(text).toMatch(new RegExp(`^\\| ${code} \\|`, "m"));
  });
});
