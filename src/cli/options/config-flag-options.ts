import { Option } from "commander";
import { type ConfigOption, configOptions } from "../../config/config-options.ts";
import type { ConfigFlags } from "../../config/load-config.ts";
import { getPath } from "../../config/read-config-file.ts";
import { configSchema } from "../../config/schema.ts";
import { collect } from "./common-options.ts";

/** Short names of common flags. */
const SHORT_FLAGS: Readonly<Record<string, string>> = {
  "http.port": "-p",
  "models.auto_load": "--auto-load",
};

const VALUE_NAMES: Readonly<Record<ConfigOption["kind"], string>> = {
  string: "text",
  integer: "n",
  number: "x",
  boolean: "",
  list: "list",
  enum: "value",
  duration: "duration",
};

/**
 * Returns the flags of the configuration, as `serve` has them, with --no-… for booleans.
 * @param names configuration options to include; undefined: all
 */
export function configFlagOptions(names?: readonly string[]): Option[] {
  const defaults = configSchema.parse({});
  return configOptions.flatMap((option) => {
    const { flag, name, description } = option;
    if (flag === undefined || names?.includes(name) === false) return [];
    const defaultValue = getPath(defaults, option.path);
    const flags = name in SHORT_FLAGS ? `${SHORT_FLAGS[name]}, ${flag}` : flag;
    if (option.kind === "boolean") {
      const positive = new Option(flags, description);
      const opposites = flags.replaceAll("--", "--no-");
      const negative = new Option(opposites, `The opposite of ${flag}. ${description}`);
      // Help shows only the flag that changes the default.
      return [positive.hideHelp(defaultValue === true), negative.hideHelp(defaultValue !== true)];
    }
    const valueName = option.holdsPath ? "path" : VALUE_NAMES[option.kind];
    const valueOption = new Option(
      `${flags} <${valueName}>`,
      description + describeDefault(option, defaultValue),
    );
    if (option.choices.length > 0) valueOption.choices([...option.choices]);
    // A list flag may be repeated, and each may hold several values separated by commas.
    if (option.kind === "list") valueOption.argParser(collect);
    return [valueOption];
  });
}

/** Default as text in the description: a default of commander would override the configuration file. */
function describeDefault({ kind }: ConfigOption, defaultValue: unknown): string {
  const text = Array.isArray(defaultValue) ? defaultValue.join(",") : defaultValue;
  if (text === undefined || text === "") return "";
  if (kind === "duration" && typeof text === "number") return ` (default: ${text / 1000}s)`;
  return ` (default: ${typeof text === "string" ? text : JSON.stringify(text)})`;
}

/** Selects the configuration's flags from commander's options. */
export function configFlags(parsed: Readonly<Record<string, unknown>>): ConfigFlags {
  const flags: Record<string, string | boolean | readonly string[]> = {};
  for (const { flag, name } of configOptions) {
    if (flag === undefined) continue;
    const value = parsed[new Option(flag).attributeName()];
    if (typeof value === "string" || typeof value === "boolean" || isList(value)) flags[name] = value;
  }
  return flags;
}

function isList(value: unknown): value is readonly string[] {
  return Array.isArray(value);
}
