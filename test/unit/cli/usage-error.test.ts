import { expect, it } from "vitest";
import { runCli } from "./run-cli.ts";

it.each([
  [["list", "--json", "--bogus"], /bogus/],
  [["--json", "run", "--max-tokens", "-1", "hi"], /max-tokens/],
  [["pull", "--json"], /model/],
])("%j prints a usage error as JSON", async (args, message) => {
  const { code, stdout, stderr } = await runCli(args);
  expect(code).toBe(2);
  expect(stdout).toBe("");
  expect(JSON.parse(stderr)).toEqual({ error: { message: expect.stringMatching(message), code: "usage" } });
});

it("prints a usage error as text without --json, also if the prompt contains it", async () => {
  expect(await runCli(["list", "--bogus"])).toEqual({
    code: 2,
    stdout: "",
    stderr: "error: unknown option '--bogus'\n",
  });
  const { stderr } = await runCli(["run", "--url", "ipc:///nonexistent/d.sock", "--", "--json"]);
  expect(stderr).toMatch(/^daybreak: /);
});
