import path from "node:path";
import type { z } from "zod";
import { EXPLAINABLE, explainIssue, issueText } from "../errors/explain-issue.ts";
import { findCacheDir } from "../launch/default-cache-dir.mjs";
import { resolvePath } from "../launch/home-folder.mjs";
import {
  ConfigError,
  getPath,
  type ReadConfig,
  readDefaultConfig,
  readNamedConfig,
  setPath,
  type Tree,
} from "./read-config-file.ts";
import { type ConfigOption, configOptions } from "./config-options.ts";
import { parseDecimal } from "./config-values.ts";
import { defaultConfigFile } from "./default-paths.ts";
import { type Config, configSchema } from "./schema.ts";

/** Command line flags by option name. */
export type ConfigFlags = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

export interface ConfigSources {
  readonly flags?: ConfigFlags;
  readonly env?: NodeJS.ProcessEnv;
  /** File of --config; undefined: SERVICE_CONFIG, otherwise the platform's default file, if it exists. */
  readonly file?: string | undefined;
  readonly platform?: NodeJS.Platform;
}

export interface LoadedConfig {
  readonly config: Config;
  /** File that was read; undefined if none was. */
  readonly file: string | undefined;
  /** Messages for the log: probable mistakes, and defaults that could not be used. */
  readonly warnings: readonly string[];
  /** Sources of the options that were set, by option name: a flag, a variable or the file's path. */
  readonly origins: ReadonlyMap<string, string>;
}

const FILE_VARIABLE = "SERVICE_CONFIG";
/** Address if the configuration file, which may require API keys, is ignored. */
const SAFE_ADDRESS = "127.0.0.1";

/** Variables with the prefix SERVICE_ that are no options: the command line's client reads them. */
const CLIENT_VARIABLES = new Set([FILE_VARIABLE, "SERVICE_URL", "SERVICE_API_KEY"]);

interface FoundValue {
  readonly value: unknown;
  /** Source in messages: "--http-port", "SERVICE_HTTP_PORT", a file's path. */
  readonly source: string;
  /** Base of relative paths. */
  readonly folder: string;
}

/**
 * Loads the configuration. Flags take precedence over the environment, the environment over the TOML file, and the file
 * over the defaults.
 * @throws ConfigError whose message names the source, the option and the expected value
 */
export function loadConfig(sources: ConfigSources): LoadedConfig {
  const env = sources.env ?? process.env;
  const { file, tree, ignoredReason: leftOut, isIgnored: isMissed } = readFile(sources, env);
  const input: Tree = structuredClone(tree ?? {});
  const origins = new Map<string, string>();
  for (const option of configOptions) {
    const found =
      fromFlags(option, sources.flags ?? {}) ?? fromEnv(option, env) ?? fromFile(option, input, file);
    if (!found) continue;
    origins.set(option.name, found.source);
    setPath(input, option.path, option.holdsPath ? absoluteValue(option, found) : found.value);
  }
  if (isMissed && !origins.has("http.addr")) setPath(input, ["http", "addr"], SAFE_ADDRESS);
  const result = configSchema.safeParse(input, EXPLAINABLE);
  if (!result.success) throw new ConfigError(explainIssues(result.error.issues, origins, input, file));
  const cacheProblem = origins.has("cache_dir") ? undefined : findCacheDir().problem;
  return {
    config: result.data,
    file: tree === undefined ? undefined : file,
    warnings: [leftOut, cacheProblem, ...unknownVariables(env)].filter((warning) => warning !== undefined),
    origins,
  };
}

/** Makes the paths of an option absolute. @throws ConfigError for ~ if the account has no home folder */
function absoluteValue({ name }: ConfigOption, { value, folder, source }: FoundValue): unknown {
  try {
    return resolvePaths(value, folder);
  } catch (cause) {
    if (!(cause instanceof NoHomeError)) throw cause;
    throw new ConfigError(
      `${source}: ${name}: this account has no home folder for ~; use an absolute path.`,
      { cause },
    );
  }
}

function readFile(
  sources: ConfigSources,
  env: NodeJS.ProcessEnv,
): ReadConfig & { readonly file: string | undefined } {
  const named = sources.file ?? (env[FILE_VARIABLE] || undefined);
  if (named !== undefined) {
    const file = path.resolve(named);
    return { file, ...readNamedConfig(file) };
  }
  const file = defaultConfigFile(env, sources.platform);
  return { file, ...(file === undefined ? { tree: undefined } : readDefaultConfig(file)) };
}

function fromFlags(option: ConfigOption, flags: ConfigFlags): FoundValue | undefined {
  const value = flags[option.name];
  if (value === undefined) return undefined;
  const source = option.flag ?? option.name;
  const texts = typeof value === "object" ? value : undefined;
  if (option.kind === "list" && texts) {
    return { value: texts.flatMap(splitList), source, folder: process.cwd() };
  }
  const text = texts ? texts.at(-1) : value;
  return {
    value: typeof text === "string" ? fromText(option, text) : text,
    source,
    folder: process.cwd(),
  };
}

function fromEnv(option: ConfigOption, env: NodeJS.ProcessEnv): FoundValue | undefined {
  for (const name of option.env) {
    const text = env[name];
    // An empty variable counts as not set, as in compose files and unit files; an empty socket means "no socket".
    if (text === undefined || (text === "" && option.name !== "socket")) continue;
    return { value: fromText(option, text), source: name, folder: process.cwd() };
  }
  return undefined;
}

function fromFile(option: ConfigOption, tree: Tree, file: string | undefined): FoundValue | undefined {
  const value = getPath(tree, option.path);
  if (value === undefined || file === undefined) return undefined;
  return { value, source: file, folder: path.dirname(file) };
}

function unknownVariables(env: NodeJS.ProcessEnv): string[] {
  const known = new Set(configOptions.flatMap((option) => option.env));
  return Object.keys(env)
    .filter((name) => name.startsWith("SERVICE_") && !known.has(name) && !CLIENT_VARIABLES.has(name))
    .map(
      (name) =>
        `The environment variable ${name} is not an option of the daemon: correct its name or unset it.`,
    );
}

/** Parses text by the option's type. Invalid text stays text, which the schema refuses. */
function fromText(option: ConfigOption, text: string): unknown {
  const trimmed = text.trim();
  switch (option.kind) {
    case "integer":
      return /^-?\d+$/.test(trimmed) ? Number(trimmed) : text;
    case "number":
      return parseDecimal(trimmed) ?? text;
    case "boolean":
      if (/^(true|1|yes|on)$/i.test(trimmed)) return true;
      return /^(false|0|no|off)$/i.test(trimmed) ? false : text;
    case "list":
      return splitList(text);
    case "enum":
    case "duration":
      return trimmed;
    default:
      return text;
  }
}

function splitList(text: string): string[] {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

/** Thrown for a path with ~ if the account has no home folder. */
class NoHomeError extends Error {
  override readonly name = "NoHomeError";
}

/**
 * Resolves one path or a list relative to `folder`; a tilde is the home folder. Names of named pipes stay as they are.
 * @throws NoHomeError
 */
function resolvePaths(values: unknown, folder: string): unknown {
  const resolve = (value: unknown): unknown => {
    if (typeof value !== "string" || value === "" || value.startsWith("\\\\.\\pipe\\")) return value;
    const resolved = resolvePath(value, folder);
    if (resolved === undefined) throw new NoHomeError();
    return resolved;
  };
  return Array.isArray(values) ? values.map(resolve) : resolve(values);
}

/** Explains each issue in a line: the source, the option, the expected and the actual value. */
function explainIssues(
  issues: readonly z.core.$ZodIssue[],
  origins: ReadonlyMap<string, string>,
  input: Tree,
  file: string | undefined,
): string {
  return issues
    .map((issue) => {
      if (issue.code === "unrecognized_keys") {
        const names = issue.keys.map((key) => [...issue.path, key].join("."));
        const [intended] = names.length === 1 ? names.map(similarOption) : [];
        const hint = intended === undefined ? "" : ` Did you mean ${intended}?`;
        return `${file ?? "configuration"}: unknown option ${names.join(", ")}; docs/configuration.md lists them all.${hint}`;
      }
      const option = configOptions.find((each) => each.path.every((key, index) => issue.path[index] === key));
      const name = option?.name ?? issue.path.join(".");
      const source = origins.get(name) ?? file ?? "default";
      const explained = explainIssue(issue, input);
      return `${source}: ${name}: ${option?.secret ? explained.message : issueText(explained)}.`;
    })
    .join("\n");
}

/** Maximum edit distance of a suggestion. */
const MAX_TYPOS = 2;

/** Suggests an option for an unknown name, which may be misspelled or lack its table. */
export function similarOption(name: string): string | undefined {
  const names = configOptions.map((option) => option.name);
  const inTables = names.filter((each) => each.endsWith(`.${name}`));
  if (inTables.length === 1) return inTables[0];
  const [nearest] = names
    .map((each) => ({ each, editDistance: editDistance(name, each) }))
    .toSorted((one, other) => one.editDistance - other.editDistance);
  return nearest && nearest.editDistance <= MAX_TYPOS && nearest.editDistance < name.length / 2
    ? nearest.each
    : undefined;
}

/** Edit distance with swaps of neighbors (optimal string alignment). */
function editDistance(from: string, to: string): number {
  let before: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1];
      const isSwapped =
        row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      current[column] = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (isSame ? 0 : 1),
        ...(isSwapped ? [(before[column - 2] ?? 0) + 1] : []),
      );
    }
    [before, last] = [last, current];
  }
  return last.at(-1) ?? 0;
}
