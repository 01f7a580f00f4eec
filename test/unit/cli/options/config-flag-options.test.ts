import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { configFlagOptions, configFlags } from "../../../../src/cli/options/config-flag-options.ts";
import { configOptions } from "../../../../src/config/config-options.ts";

/** What these flags of `serve` say to the configuration. */
function flags(...args: string[]) {
  const command = new Command("serve").exitOverride().configureOutput({ writeErr: () => {} });
  for (const option of configFlagOptions()) command.addOption(option);
  return configFlags(command.parse(args, { from: "user" }).opts());
}

describe("the flags of serve", () => {
  it("are those that the configuration has", () => {
    const longs = configFlagOptions().map((option) => option.long);
    expect(longs).toEqual(expect.arrayContaining(configOptions.flatMap(({ flag }) => flag ?? [])));
  });

  it("say nothing that was not given: the file and the environment count then", () => {
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
  ])("take %s", (_what, args, expected) => expect(flags(...args)).toEqual(expected));

  it("hold no secret: every user of a machine can read its command lines", () => {
    expect(configFlagOptions().map((option) => option.long)).not.toContain("--hub-token");
    expect(() => flags("--api-keys", "k")).toThrow("unknown option");
  });

  it("refuse what is not a choice", () => {
    expect(() => flags("--log-level", "loud")).toThrow("Allowed choices");
  });
});
