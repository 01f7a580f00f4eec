import { closeSync, fstatSync, openSync, readFileSync, statSync } from "node:fs";
import { parse, TomlError } from "smol-toml";
import { isRecord } from "../json/json-values.ts";
import { toError } from "../errors/service-error.ts";

/** Invalid configuration; the message names the source, the option and the expected value. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/** Content of a configuration file, or the reason why it is ignored. */
export interface ReadConfig {
  /** Undefined if there is no file, or it is ignored. */
  readonly tree: Tree | undefined;
  /** Sentence for the log about an ignored file. */
  readonly ignoredReason?: string;
  /** True if an existing file is ignored, so that its settings are unknown. */
  readonly isIgnored?: boolean;
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
 * Reads the default configuration file. A file that cannot be read, or that belongs to another user than root, is
 * ignored, because a home folder may be a shared one, such as /tmp.
 * @param uid user id of the account; undefined on systems without user ids
 * @throws ConfigError if the file is not TOML
 */
export function readDefaultConfig(file: string, uid = process.getuid?.()): ReadConfig {
  try {
    const fd = openSync(file, "r");
    try {
      const owner = fstatSync(fd).uid;
      if (uid === undefined || owner === uid || owner === 0)
        return { tree: parseToml(readFileSync(fd, "utf8"), file) };
      return ignoredConfig(file, `belongs to another user (number ${owner})`);
    } finally {
      closeSync(fd);
    }
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    if (isMissing(cause)) return { tree: undefined };
    return ignoredConfig(file, `cannot be read (${reasonOf(cause)})`);
  }
}

/** True if the system says that the file exists, even if it cannot be read. */
function exists(file: string): boolean {
  try {
    return statSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
}

function ignoredConfig(file: string, why: string): ReadConfig {
  const isIgnored = exists(file);
  const caution = isIgnored
    ? " The daemon listens on 127.0.0.1 only unless another address is set, since the file may restrict access."
    : "";
  const ignoredReason = `The configuration ${file} ${why} and is ignored.${caution} To use it, name it with --config or SERVICE_CONFIG.`;
  return { tree: undefined, ignoredReason, isIgnored };
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

/** True if the file does not exist. ENOTDIR: the home of service accounts is often /dev/null. */
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

/** Value at a path; undefined if any table on the way is missing. */
export function getPath(tree: Tree, keys: readonly string[]): unknown {
  let value: unknown = tree;
  for (const key of keys) value = isRecord(value) ? value[key] : undefined;
  return value;
}

/** Sets the value at a path and creates the tables on the way. */
export function setPath(tree: Tree, keys: readonly string[], value: unknown): void {
  const [key, ...rest] = keys;
  if (key === undefined) return;
  if (rest.length === 0) {
    tree[key] = value;
    return;
  }
  const child = tree[key];
  const branch = isRecord(child) ? child : {};
  tree[key] = branch;
  setPath(branch, rest, value);
}
