import { Option } from "commander";
import { type ConfigOption, configOptions } from "../../config/config-options.ts";
import type { ConfigFlags } from "../../config/load-config.ts";

/** Shorter names of flags that are typed by hand often. */
const SHORT_FLAGS: Readonly<Record<string, string>> = {
  "http.port": "-p",
  "models.auto_load": "--auto-load",
};

const VALUE_NAMES: Readonly<Record<ConfigOption["kind"], string>> = {
  string: "text",
  integer: "n",
  boolean: "",
  list: "list",
  enum: "value",
  duration: "duration",
};

/** The options of `serve`: one for every option of the configuration that has a flag, and --no-… for the booleans. */
export function configFlagOptions(): Option[] {
  return configOptions.flatMap((option) => {
    const { flag, name } = option;
    if (flag === undefined) return [];
    const flags = name in SHORT_FLAGS ? `${SHORT_FLAGS[name]}, ${flag}` : flag;
    if (option.kind === "boolean") {
      const negative = new Option(`--no-${flag.slice(2)}`, `not: ${option.description}`).hideHelp();
      return [new Option(flags, option.description), negative];
    }
    const valueName = option.holdsPath ? "path" : VALUE_NAMES[option.kind];
    const made = new Option(`${flags} <${valueName}>`, option.description);
    if (option.choices.length > 0) made.choices([...option.choices]);
    if (option.kind === "list") made.argParser(collect);
    return [made];
  });
}

/** The configuration's flags among what commander has parsed. */
export function configFlags(parsed: Readonly<Record<string, unknown>>): ConfigFlags {
  const flags: Record<string, string | boolean | readonly string[]> = {};
  for (const { flag, name } of configOptions) {
    if (flag === undefined) continue;
    const value = parsed[new Option(flag).attributeName()];
    if (typeof value === "string" || typeof value === "boolean" || isList(value)) flags[name] = value;
  }
  return flags;
}

/** A list may be given as several flags, each of which may hold several values with commas between them. */
function collect(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value];
}

function isList(value: unknown): value is readonly string[] {
  return Array.isArray(value);
}
