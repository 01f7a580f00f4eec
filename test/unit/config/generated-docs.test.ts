import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { parse } from "smol-toml";
import { describe, expect, test } from "vitest";
import { exampleConfig } from "../../../scripts/docs/example-config.ts";
import { generatedFiles } from "../../../scripts/docs/generated-files.ts";
import { configOptions } from "../../../src/config/config-options.ts";
import { configSchema } from "../../../src/config/schema.ts";
import { unless } from "../../support/need.ts";

const files = await generatedFiles();

describe("generated documentation", () => {
  test.each(
    files.map(({ file, text }) => [file.pathname.split("/").slice(-2).join("/"), file, text] as const),
  )("%s is up to date (npm run docs updates it)", (_name, file, text) => {
    expect(readFileSync(file, "utf8")).toBe(text);
  });

  const MANDOC = unless(spawnSync("mandoc", ["-V"]).error === undefined, "no mandoc");
  test.skipIf(MANDOC.isMissing)(`the man page passes mandoc's lint${MANDOC.note}`, () => {
    const page = files.find(({ file }) => file.pathname.endsWith(".1"));
    const { stdout } = spawnSync("mandoc", ["-T", "lint"], { input: page?.text, encoding: "utf8" });
    expect(stdout).toBe("");
  });

  test("every option has a description", () => {
    expect(configOptions.filter((option) => option.description === "")).toEqual([]);
  });

  test("the example configuration is valid with all options", () => {
    const text = exampleConfig().replaceAll(/^# (\w+ = )/gm, "$1");
    const config: unknown = parse(text);
    expect(() => configSchema.parse(config)).not.toThrow();
    for (const option of configOptions) expect(config).toHaveProperty(option.path.join("."));
  });
});
