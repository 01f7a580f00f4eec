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
])("commandFirst(%j) is %j", (args, expected) => {
  expect(commandFirst(args)).toEqual(expected);
});

it("accepts common options before the command", async () => {
  const unreachable = ["--json", "--url", "ipc:///nonexistent/d.sock"];
  const before = await runCli([...unreachable, "list"]);
  expect(before).toMatchObject({ code: 3, stderr: expect.stringContaining('"code":"no_daemon"') });
  expect(before).toEqual(await runCli(["list", ...unreachable]));
});
