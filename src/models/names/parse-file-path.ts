import { invalidName, hasInvisible, isDeviceName } from "./name-rules.ts";

export interface PathContext {
  readonly platform: NodeJS.Platform;
  /** Home folder of the daemon's user; undefined for an account without one. */
  readonly home: string | undefined;
}

/** `/`, `./`, `../`, `~`, a drive letter with a separator, or a leading backslash. */
const PATH_START = /^(?:[/\\~]|\.\.?(?:[/\\]|$)|[A-Za-z]:[/\\])/;
const DRIVE = /^[A-Za-z]:[/\\]/;
/** A percent-encoded name, perhaps encoded twice to hide its meaning. */
const ENCODED = /%(?:00|2e|2f|5c|25)/i;

/** How Ollama names the files of its models, which it prints in Modelfiles. */
const BLOB = /[/\\]sha256-[0-9a-f]{64}$/;

/** Whether a name has the form of a path, allowed or not. */
export function looksLikePath(name: string): boolean {
  return PATH_START.test(name) || /\.gguf$/i.test(name);
}

/**
 * Parses a name that has the form of a path. A leading `~/` is expanded; nothing else is changed or looked up. Whoever
 * opens the path decides where it may lead. Throws `invalid_model_name`.
 */
export function parseFilePath(name: string, { platform, home }: PathContext): string {
  const isWindows = platform === "win32";
  if (hasInvisible(name)) throw invalidName(name, "a path must not have invisible characters");
  if (ENCODED.test(name)) throw invalidName(name, "a path is written plainly, without percent encoding");
  if (/^[/\\]{2}/.test(name)) throw invalidName(name, "network paths are not allowed");
  if (/^[A-Za-z]:(?![/\\])/.test(name)) throw invalidName(name, "behind a drive letter comes a separator");
  if (!isWindows && name.includes("\\"))
    throw invalidName(name, "on this system paths have / between their parts");
  if (!isWindows && DRIVE.test(name)) throw invalidName(name, "there are no drive letters on this system");
  if (isWindows && name.replace(DRIVE, "").includes(":")) {
    throw invalidName(name, "a path has a colon behind its drive letter only");
  }
  if (name.startsWith("~") && !/^~[/\\]/.test(name)) {
    throw invalidName(name, "~ stands for the daemon's own home folder only");
  }
  if (!/\.gguf$/i.test(name) && !BLOB.test(name)) throw invalidName(name, "a path must end in .gguf");
  if (isDeviceName(name.split(/[/\\]/).at(-1) ?? "")) throw invalidName(name, "it is the name of a device");
  if (!name.startsWith("~")) return name;
  if (home === undefined) throw invalidName(name, "the daemon's account has no home folder");
  return home + name.slice(1);
}
