import path from "node:path";
import type { z } from "zod";
import { explainIssue, IN_WORDS, issueText } from "../errors/explain-issue.ts";
import { findCacheDir } from "../launch/default-cache-dir.mjs";
import { resolvePath } from "../launch/resolve-path.mjs";
import { ConfigError } from "./config-error.ts";
import { type ConfigOption, configOptions } from "./config-options.ts";
import { readNumber } from "./config-values.ts";
import { defaultConfigFile } from "./default-paths.ts";
import {
  getPath,
  type ReadConfig,
  readDefaultConfig,
  readNamedConfig,
  setPath,
  type Tree,
} from "./read-config-file.ts";
import { type Config, configSchema } from "./schema.ts";

/** Flags by option name, as given on the command line. */
export type ConfigFlags = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

export interface ConfigSources {
  readonly flags?: ConfigFlags;
  readonly env?: NodeJS.ProcessEnv;
  /** From --config; absent: SERVICE_CONFIG, or else the platform's default file, if it exists. */
  readonly file?: string | undefined;
  readonly platform?: NodeJS.Platform;
}

export interface LoadedConfig {
  readonly config: Config;
  /** The file that was read. */
  readonly file: string | undefined;
  /** For the log: probable mistakes, and defaults that could not be used. */
  readonly warnings: readonly string[];
  /** Where each non-default option was set, by its name: a flag, a variable or the file's path. */
  readonly origins: ReadonlyMap<string, string>;
}

const FILE_VARIABLE = "SERVICE_CONFIG";
/** Where the daemon listens if a configuration file that may contain API keys is ignored. */
const CAUTIOUS_ADDRESS = "127.0.0.1";

/** Variables with the service's prefix that are not options, but are read by the command line's client. */
const OTHER_VARIABLES = new Set([FILE_VARIABLE, "SERVICE_URL", "SERVICE_API_KEY"]);

interface Found {
  readonly value: unknown;
  /** For people: "--http-port", "SERVICE_HTTP_PORT", a file's path. */
  readonly source: string;
  /** Folder that relative paths are relative to. */
  readonly folder: string;
}

/**
 * Loads the configuration. Flags take precedence over the environment, that over the TOML file, and that over the defaults.
 * Throws a ConfigError whose message names the source, the option and what was expected.
 */
export function loadConfig(sources: ConfigSources): LoadedConfig {
  const env = sources.env ?? process.env;
  const { file, tree, leftOut, isMissed } = readFile(sources, env);
  const input: Tree = structuredClone(tree ?? {});
  const origins = new Map<string, string>();
  for (const option of configOptions) {
    const found =
      fromFlags(option, sources.flags ?? {}) ?? fromEnv(option, env) ?? fromFile(option, input, file);
    if (!found) continue;
    origins.set(option.name, found.source);
    setPath(input, option.path, option.holdsPath ? absolute(option, found) : found.value);
  }
  if (isMissed && !origins.has("http.addr")) setPath(input, ["http", "addr"], CAUTIOUS_ADDRESS);
  const result = configSchema.safeParse(input, IN_WORDS);
  if (!result.success) throw new ConfigError(explainIssues(result.error.issues, origins, input, file));
  const cacheProblem = origins.has("cache_dir") ? undefined : findCacheDir().problem;
  return {
    config: result.data,
    file: tree === undefined ? undefined : file,
    warnings: [leftOut, cacheProblem, ...unknownVariables(env)].filter((warning) => warning !== undefined),
    origins,
  };
}

/** @throws ConfigError for the home folder of an account without one */
function absolute({ name }: ConfigOption, { value, folder, source }: Found): unknown {
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

function fromFlags(option: ConfigOption, flags: ConfigFlags): Found | undefined {
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

function fromEnv(option: ConfigOption, env: NodeJS.ProcessEnv): Found | undefined {
  for (const name of option.env) {
    const text = env[name];
    // In compose files and unit files, an empty variable means "not set"; an empty socket means "no socket".
    if (text === undefined || (text === "" && option.name !== "socket")) continue;
    return { value: fromText(option, text), source: name, folder: process.cwd() };
  }
  return undefined;
}

function fromFile(option: ConfigOption, tree: Tree, file: string | undefined): Found | undefined {
  const value = getPath(tree, option.path);
  if (value === undefined || file === undefined) return undefined;
  return { value, source: file, folder: path.dirname(file) };
}

function unknownVariables(env: NodeJS.ProcessEnv): string[] {
  const known = new Set(configOptions.flatMap((option) => option.env));
  return Object.keys(env)
    .filter((name) => name.startsWith("SERVICE_") && !known.has(name) && !OTHER_VARIABLES.has(name))
    .map(
      (name) =>
        `The environment variable ${name} is not an option of the daemon: correct its name or unset it.`,
    );
}

/** Text that does not fit the option's type stays text, which the schema then refuses. */
function fromText(option: ConfigOption, text: string): unknown {
  const trimmed = text.trim();
  switch (option.kind) {
    case "integer":
      return /^-?\d+$/.test(trimmed) ? Number(trimmed) : text;
    case "number":
      return readNumber(trimmed) ?? text;
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

/** A path begins with ~, and the account has no home folder. */
class NoHomeError extends Error {
  override readonly name = "NoHomeError";
}

/**
 * Resolves a path relative to `folder`; a tilde is the home folder. Named pipes are not paths.
 * @throws NoHomeError
 */
function resolvePaths(given: unknown, folder: string): unknown {
  const resolve = (value: unknown): unknown => {
    if (typeof value !== "string" || value === "" || value.startsWith("\\\\.\\pipe\\")) return value;
    const resolved = resolvePath(value, folder);
    if (resolved === undefined) throw new NoHomeError();
    return resolved;
  };
  return Array.isArray(given) ? given.map(resolve) : resolve(given);
}

/** One line per issue: the source, the option, what was expected and what was found. */
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
        const [meant] = names.length === 1 ? names.map(similarOption) : [];
        const hint = meant === undefined ? "" : ` Did you mean ${meant}?`;
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

/** Letters that a slip of the fingers changes. */
const MAX_SLIPS = 2;

/** The option that somebody may have meant with a name that is none: misspelled, or without its table. */
export function similarOption(name: string): string | undefined {
  const names = configOptions.map((option) => option.name);
  const elsewhere = names.filter((each) => each.endsWith(`.${name}`));
  if (elsewhere.length === 1) return elsewhere[0];
  const [nearest] = names
    .map((each) => ({ each, slips: slips(name, each) }))
    .toSorted((one, other) => one.slips - other.slips);
  return nearest && nearest.slips <= MAX_SLIPS && nearest.slips < name.length / 2 ? nearest.each : undefined;
}

/** Letters to insert, remove, replace or swap with the next one. */
function slips(from: string, to: string): number {
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
