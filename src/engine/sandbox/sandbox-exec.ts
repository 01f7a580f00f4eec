import { lstatSync } from "node:fs";
import type { ProcessStart, Sandbox } from "./sandbox.ts";

/** Path of sandbox-exec, a part of every macOS installation. */
export const SANDBOX_EXEC = "/usr/bin/sandbox-exec";

/**
 * Sandbox of macOS, which denies everything that the profile does not allow. The process may read its own files and the
 * system's libraries, without which no program starts; it cannot write, use the network or start processes.
 */
export function sandboxExec(): Sandbox {
  return {
    name: "sandbox-exec",
    parts: ["only its own files and the system's libraries visible", "no network", "no other processes"],
    enclose,
  };
}

function enclose(start: ProcessStart, readable: readonly string[]): ProcessStart {
  return {
    ...start,
    command: SANDBOX_EXEC,
    args: ["-p", sandboxProfile([start.command, ...readable]), start.command, ...start.args],
  };
}

/** The macOS sandbox profile of a process that may read these files and folders; the first is its program. */
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

/** Quotes a path for the profile. A path that ends in a slash would not match anything. */
function quote(file: string): string {
  const name = file.length > 1 ? file.replace(/\/$/, "") : file;
  return `"${name.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}
