import { Option } from "commander";
import { type ConfigOption, configOptions } from "../../config/config-options.ts";
import type { ConfigFlags } from "../../config/load-config.ts";
import { configSchema } from "../../config/schema.ts";
import { collect } from "./common-options.ts";

/** Short names of flags that are often typed by hand. */
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
 * The options of `serve`: one for every option of the configuration that has a flag, and --no-… for the booleans.
 * @param names the configuration options to include; all when absent
 */
export function configFlagOptions(names?: readonly string[]): Option[] {
  const defaults: unknown = configSchema.parse({});
  return configOptions.flatMap((option) => {
    const { flag, name, description } = option;
    if (flag === undefined || names?.includes(name) === false) return [];
    const preset = valueAt(defaults, option.path);
    const flags = name in SHORT_FLAGS ? `${SHORT_FLAGS[name]}, ${flag}` : flag;
    if (option.kind === "boolean") {
      const positive = new Option(flags, description);
      const opposites = flags.replaceAll("--", "--no-");
      const negative = new Option(opposites, `The opposite of ${flag}. ${description}`);
      // Help shows the one that changes the default.
      return [positive.hideHelp(preset === true), negative.hideHelp(preset !== true)];
    }
    const valueName = option.holdsPath ? "path" : VALUE_NAMES[option.kind];
    const made = new Option(`${flags} <${valueName}>`, description + describeDefault(option, preset));
    if (option.choices.length > 0) made.choices([...option.choices]);
    // A list may be given as several flags, each of which may hold several values with commas between them.
    if (option.kind === "list") made.argParser(collect);
    return [made];
  });
}

function valueAt(tree: unknown, keys: readonly string[]): unknown {
  let value = tree;
  for (const key of keys)
    value = typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
  return value;
}

/** As text: a commander default would look like a given flag and override the file. */
function describeDefault({ kind }: ConfigOption, preset: unknown): string {
  const shown = Array.isArray(preset) ? preset.join(",") : preset;
  if (shown === undefined || shown === "") return "";
  if (kind === "duration" && typeof shown === "number") return ` (default: ${shown / 1000}s)`;
  return ` (default: ${typeof shown === "string" ? shown : JSON.stringify(shown)})`;
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

function isList(value: unknown): value is readonly string[] {
  return Array.isArray(value);
}
