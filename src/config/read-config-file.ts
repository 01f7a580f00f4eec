import { closeSync, fstatSync, openSync, readFileSync, statSync } from "node:fs";
import { parse, TomlError } from "smol-toml";
import { toError } from "../errors/to-error.ts";
import { ConfigError } from "./config-error.ts";

/** The content of a configuration file, or why it is ignored. */
export interface ReadConfig {
  /** Undefined if there is no file, or it is ignored. */
  readonly tree: Tree | undefined;
  /** Why an existing file is ignored, as a sentence for the log. */
  readonly leftOut?: string;
  /** True if a file certainly exists but is ignored, so that its settings are unknown. */
  readonly isMissed?: boolean;
}

/**
 * Reads a file that the user has named.
 * @throws ConfigError if that fails
 */
export function readNamedConfig(file: string): ReadConfig {
  try {
    return { tree: parseToml(readFileSync(file, "utf8"), file) };
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    const reason = isMissing(cause) ? "there is no such file" : reasonOf(cause);
    throw new ConfigError(`Cannot read the configuration ${file}: ${reason}.`, { cause });
  }
}

/**
 * Reads the default configuration file. It is ignored if it cannot be read, or if it belongs to another user other than the
 * administrator: a home folder may be a shared one, such as /tmp.
 * @param uid the account's user id; undefined if there are none on this system
 * @throws ConfigError when it is not TOML
 */
export function readDefaultConfig(file: string, uid = process.getuid?.()): ReadConfig {
  try {
    const fd = openSync(file, "r");
    try {
      const owner = fstatSync(fd).uid;
      if (uid === undefined || owner === uid || owner === 0)
        return { tree: parseToml(readFileSync(fd, "utf8"), file) };
      return skipped(file, `belongs to another user (number ${owner})`);
    } finally {
      closeSync(fd);
    }
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    if (isMissing(cause)) return { tree: undefined };
    return skipped(file, `cannot be read (${reasonOf(cause)})`);
  }
}

/** Whether the system at least says that the file exists. */
function isThere(file: string): boolean {
  try {
    return statSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
}

function skipped(file: string, why: string): ReadConfig {
  const isMissed = isThere(file);
  const caution = isMissed
    ? " The daemon listens on 127.0.0.1 only unless told otherwise, since the file may ask for that or for keys."
    : "";
  const leftOut = `The configuration ${file} ${why} and is ignored.${caution} To use it, name it with --config or SERVICE_CONFIG.`;
  return { tree: undefined, leftOut, isMissed };
}

function parseToml(text: string, file: string): Tree {
  try {
    return parse(text);
  } catch (cause) {
    if (!(cause instanceof TomlError)) throw cause;
    const [what] = cause.message.split("\n", 1);
    throw new ConfigError(`${file}:${cause.line}:${cause.column}: not valid TOML: ${what}`, { cause });
  }
}

/** Service accounts often have /dev/null as home, in which no folder can be. */
function isMissing(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause && (cause.code === "ENOENT" || cause.code === "ENOTDIR");
}

function reasonOf(cause: unknown): string {
  if (cause instanceof Error && "code" in cause && (cause.code === "EACCES" || cause.code === "EPERM"))
    return "this user is not allowed to read it";
  return toError(cause).message;
}

/** Nested tables, as in TOML. */
export interface Tree {
  [key: string]: unknown;
}

function isTree(value: unknown): value is Tree {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Undefined if any table on the way is missing. */
export function getPath(tree: Tree, keys: readonly string[]): unknown {
  let value: unknown = tree;
  for (const key of keys) value = isTree(value) ? value[key] : undefined;
  return value;
}

/** Creates the tables on the way. */
export function setPath(tree: Tree, keys: readonly string[], value: unknown): void {
  const [key, ...rest] = keys;
  if (key === undefined) return;
  if (rest.length === 0) {
    tree[key] = value;
    return;
  }
  const child = tree[key];
  const branch = isTree(child) ? child : {};
  tree[key] = branch;
  setPath(branch, rest, value);
}
