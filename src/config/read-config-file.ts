import { closeSync, fstatSync, openSync, readFileSync, statSync } from "node:fs";
import { parse, TomlError } from "smol-toml";
import { ConfigError } from "./config-error.ts";
import type { Tree } from "./tree.ts";

/** What there is to read of a configuration file. */
export interface ReadConfig {
  /** Undefined when there is no file, or none that counts. */
  readonly tree: Tree | undefined;
  /** Why a file that is there does not count: a sentence, for the log. */
  readonly leftOut?: string;
  /** True for a file that is there for certain and does not count: nobody knows what it asks for. */
  readonly isMissed?: boolean;
}

/**
 * Reads a file that the user has named.
 * @throws ConfigError when that cannot be done
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
 * Reads the file at the place where one is looked for that nobody has named. It does not count when it cannot be read,
 * or when another user, who is not the administrator, has written it: a home folder may be everybody's, such as /tmp.
 * @param uid the account's number; undefined where there is none
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

/** True for a file of which the system says at least that it is there. */
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

/** Users of services often have /dev/null for a home, which holds no folder. */
function isMissing(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause && (cause.code === "ENOENT" || cause.code === "ENOTDIR");
}

function reasonOf(cause: unknown): string {
  if (cause instanceof Error && "code" in cause && (cause.code === "EACCES" || cause.code === "EPERM"))
    return "this user is not allowed to read it";
  return cause instanceof Error ? cause.message : String(cause);
}
