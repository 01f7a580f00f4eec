import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { configFlagOptions, configFlags } from "../../../../src/cli/options/config-flag-options.ts";
import { configOptions } from "../../../../src/config/config-options.ts";

/** Configuration flags that these arguments of `serve` set. */
function flags(...args: string[]) {
  const command = new Command("serve").exitOverride().configureOutput({ writeErr: () => {} });
  for (const option of configFlagOptions()) command.addOption(option);
  return configFlags(command.parse(args, { from: "user" }).opts());
}

describe("the flags of serve", () => {
  it("include all options of the configuration", () => {
    const longs = configFlagOptions().map((option) => option.long);
    expect(longs).toEqual(expect.arrayContaining(configOptions.flatMap(({ flag }) => flag ?? [])));
  });

  it("set nothing without arguments, so that the file and the environment apply", () => {
    expect(flags()).toEqual({});
  });

  it.each([
    ["a value", ["--http-port", "0"], { "http.port": "0" }],
    ["the short name", ["-p", "0"], { "http.port": "0" }],
    ["a switch", ["--models-auto-load"], { "models.auto_load": true }],
    ["its shorter name", ["--auto-load"], { "models.auto_load": true }],
    ["a switch turned off", ["--no-ui"], { ui: false }],
    ["a switch turned off by its shorter name", ["--no-auto-load"], { "models.auto_load": false }],
    ["a list", ["--models-load", "a,b", "--models-load", "c"], { "models.load": ["a,b", "c"] }],
    ["an empty text", ["--socket", ""], { socket: "" }],
  ])("accept %s", (_what, args, expected) => expect(flags(...args)).toEqual(expected));

  it("include no secrets, since all users of a machine can read command lines", () => {
    expect(configFlagOptions().map((option) => option.long)).not.toContain("--hub-token");
    expect(() => flags("--api-keys", "k")).toThrow("unknown option");
  });

  it("refuse an invalid choice", () => {
    expect(() => flags("--log-level", "loud")).toThrow("Allowed choices");
  });
});
