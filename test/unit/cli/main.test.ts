import { expect, it } from "vitest";
import { commandFirst } from "../../../src/cli/main.ts";
import { runCli } from "./run-cli.ts";

it.each([
  [
    ["list", "--json"],
    ["list", "--json"],
  ],
  [
    ["--url", "box", "list", "-q"],
    ["list", "--url", "box", "-q"],
  ],
  [
    ["--json", "--url=box", "--socket", "/s", "show", "m"],
    ["show", "--json", "--url=box", "--socket", "/s", "m"],
  ],
  [["--help"], ["--help"]],
  [["--url"], ["--url"]],
  [
    ["--url", "box", "--help"],
    ["--url", "box", "--help"],
  ],
  [
    ["--unknown", "list"],
    ["--unknown", "list"],
  ],
  [[], []],
])("%j is understood as %j", (args, expected) => {
  expect(commandFirst(args)).toEqual(expected);
});

it("holds for the whole program", async () => {
  const nobody = ["--json", "--url", "ipc:///nonexistent/d.sock"];
  const before = await runCli([...nobody, "list"]);
  expect(before).toMatchObject({ code: 3, stderr: expect.stringContaining('"code":"no_daemon"') });
  expect(before).toEqual(await runCli(["list", ...nobody]));
});
