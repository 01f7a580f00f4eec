import { lstatSync } from "node:fs";
import type { ProcessStart, Wall, WallView } from "./wall.ts";

/** Part of every macOS. */
export const SANDBOX_EXEC = "/usr/bin/sandbox-exec";

/**
 * The wall of macOS: what the profile does not allow is refused. The system's own libraries may be read, as no program
 * starts without them; the rest of the disk may not, nor may anything be written, sent or started.
 */
export function sandboxExec(): Wall {
  return {
    name: "sandbox-exec",
    parts: ["a view of only its own files and the system's libraries", "no network", "no other process"],
    enclose,
  };
}

function enclose(start: ProcessStart, view: WallView): ProcessStart {
  return {
    ...start,
    command: SANDBOX_EXEC,
    args: ["-p", sandboxProfile([start.command, ...view.readable]), start.command, ...start.args],
  };
}

/** What a process that reads these files and folders may do, in the language of macOS's sandbox. */
export function sandboxProfile(readable: readonly string[]): string {
  const runtime = readable[0] ?? "";
  return [
    "(version 1)",
    "(deny default)",
    `(allow process-exec (literal ${quote(runtime)}))`,
    "(allow signal (target self))",
    "(allow sysctl-read)",
    '(allow mach-lookup (global-name "com.apple.system.notification_center"))',
    "(allow file-read-metadata)",
    '(allow file-read* (literal "/") (subpath "/usr/lib") (subpath "/System") (subpath "/Library/Apple"))',
    '(allow file-read* (subpath "/private/var/db/dyld") (literal "/dev/null") (literal "/dev/urandom"))',
    ...readable.map(
      (file) => `(allow file-read* (${isFolder(file) ? "subpath" : "literal"} ${quote(file)}))`,
    ),
  ].join("\n");
}

function isFolder(file: string): boolean {
  return lstatSync(file, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** A text as the profile's language writes it; a folder's last slash would match nothing. */
function quote(file: string): string {
  const name = file.length > 1 ? file.replace(/\/$/, "") : file;
  return `"${name.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}
