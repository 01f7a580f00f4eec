import { readFileSync } from "node:fs";
import path from "node:path";
import { parse, TomlError } from "smol-toml";
import { IN_WORDS } from "../errors/explain-issue.ts";
import { ConfigError } from "./config-error.ts";
import { configOptions, type ConfigOption } from "./config-options.ts";
import { defaultConfigFile } from "./default-config-file.ts";
import { explainIssues } from "./explain-issues.ts";
import { fromText, resolvePaths, splitList } from "./option-value.ts";
import { configSchema, type Config } from "./schema.ts";
import { getPath, setPath, type Tree } from "./tree.ts";

/** Flags by option name, as the command line gave them. */
export type ConfigFlags = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

export interface ConfigSources {
  readonly flags?: ConfigFlags;
  readonly env?: NodeJS.ProcessEnv;
  /** From --config; absent: SERVICE_CONFIG, else the platform's default when it exists. */
  readonly file?: string | undefined;
  readonly platform?: NodeJS.Platform;
}

export interface LoadedConfig {
  readonly config: Config;
  /** The file that was read. */
  readonly file: string | undefined;
  /** For the log: settings that are probably mistakes. */
  readonly warnings: readonly string[];
  /** Where each option that is not at its default was set, by its name: a flag, a variable or the file's path. */
  readonly origins: ReadonlyMap<string, string>;
}

const FILE_VARIABLE = "SERVICE_CONFIG";
/** Variables with the service's prefix that are no options: they are read by the command line's client. */
const OTHER_VARIABLES = new Set([FILE_VARIABLE, "SERVICE_URL", "SERVICE_API_KEY"]);

interface Found {
  readonly value: unknown;
  /** For people: "--http-port", "SERVICE_HTTP_PORT", a file's path. */
  readonly source: string;
  /** Folder from which relative paths count. */
  readonly folder: string;
}

/**
 * Puts the configuration together: flags, over the environment, over the TOML file, over the defaults.
 * Throws a ConfigError whose message names the source, the option and what was expected.
 */
export function loadConfig(sources: ConfigSources = {}): LoadedConfig {
  const env = sources.env ?? process.env;
  const file = chooseFile(sources, env);
  const tree = file === undefined ? {} : readToml(file.path, file.required);
  const input: Tree = structuredClone(tree ?? {});
  const origins = new Map<string, string>();
  for (const option of configOptions) {
    const found =
      fromFlags(option, sources.flags ?? {}) ?? fromEnv(option, env) ?? fromFile(option, input, file?.path);
    if (!found) continue;
    origins.set(option.name, found.source);
    setPath(input, option.path, option.holdsPath ? resolvePaths(found.value, found.folder) : found.value);
  }
  const result = configSchema.safeParse(input, IN_WORDS);
  if (!result.success) throw new ConfigError(explainIssues(result.error.issues, origins, input, file?.path));
  return {
    config: result.data,
    file: tree === undefined ? undefined : file?.path,
    warnings: unknownVariables(env),
    origins,
  };
}

function chooseFile(
  sources: ConfigSources,
  env: NodeJS.ProcessEnv,
): { path: string; required: boolean } | undefined {
  const named = sources.file ?? (env[FILE_VARIABLE] || undefined);
  if (named !== undefined) return { path: path.resolve(named), required: true };
  return { path: defaultConfigFile(env, sources.platform), required: false };
}

/** Undefined when a file that need not exist does not. */
function readToml(file: string, required: boolean): Tree | undefined {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    const missing = isMissing(cause);
    if (missing && !required) return undefined;
    const reason = missing ? "there is no such file" : cause instanceof Error ? cause.message : String(cause);
    throw new ConfigError(`Cannot read the configuration ${file}: ${reason}.`, { cause });
  }
  try {
    return parse(text);
  } catch (cause) {
    if (!(cause instanceof TomlError)) throw cause;
    throw new ConfigError(
      `${file}:${cause.line}:${cause.column}: not valid TOML: ${firstLine(cause.message)}`,
      {
        cause,
      },
    );
  }
}

/** Users of services often have /dev/null for a home, which holds no folder. */
function isMissing(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause && (cause.code === "ENOENT" || cause.code === "ENOTDIR");
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
    // An empty variable is how compose files and unit files say "not set"; an empty socket says "no socket".
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
    .map((name) => `The environment variable ${name} is not an option of this daemon.`);
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? "";
}
