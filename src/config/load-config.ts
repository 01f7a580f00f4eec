import path from "node:path";
import { IN_WORDS } from "../errors/explain-issue.ts";
import { findCacheDir } from "../launch/default-cache-dir.mjs";
import { ConfigError } from "./config-error.ts";
import { configOptions, type ConfigOption } from "./config-options.ts";
import { defaultConfigFile } from "./default-config-file.ts";
import { explainIssues } from "./explain-issues.ts";
import { fromText, NoHomeError, resolvePaths, splitList } from "./option-value.ts";
import { readDefaultConfig, readNamedConfig, type ReadConfig } from "./read-config-file.ts";
import { configSchema, type Config } from "./schema.ts";
import { getPath, setPath, type Tree } from "./tree.ts";

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
