import { existsSync, lstatSync, readlinkSync } from "node:fs";
import path from "node:path";
import { z } from "zod";
import { FIRST_INPUT_FD } from "../channel/parent-channel.ts";
import { seccompFilter } from "./seccomp-filter.ts";

export interface ProcessStart {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Data for the file descriptors after those of the channel, in order. */
  readonly inputs?: readonly Uint8Array[];
}

export type SandboxName = "bubblewrap" | "namespaces" | "sandbox-exec";

/** Sandbox of the operating system around an engine, in addition to Node's permission model. */
export interface Sandbox {
  readonly name: SandboxName;
  /** Restrictions of the sandbox, for people. */
  readonly parts: readonly string[];
  /**
   * Returns the start of the same process inside the sandbox.
   * @param readable files and folders that the process may read, in addition to Node
   */
  enclose(start: ProcessStart, readable: readonly string[]): ProcessStart;
}

interface BubblewrapOptions {
  readonly binary: string;
  /** Node's libraries, and the files with which the loader finds them. */
  readonly runtimeFiles: readonly string[];
  readonly arch: string;
}

/** User and group id of `nobody`, which owns no files on most systems. */
const NOBODY = "65534";

/**
 * Sandbox of bubblewrap: a separate root with only Node, the engine's code and the model's files, all read-only; no
 * network, no other processes, no privileges, and a system call filter.
 */
export function bubblewrap({ binary, runtimeFiles, arch }: BubblewrapOptions): Sandbox {
  const filter = seccompFilter(arch);
  const enclose = (start: ProcessStart, readable: readonly string[]): ProcessStart => {
    const visible = new Set([start.command, ...runtimeFiles, ...readable]);
    return {
      ...start,
      command: binary,
      args: [
        "--unshare-user",
        "--unshare-pid",
        "--unshare-net",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--uid",
        NOBODY,
        "--gid",
        NOBODY,
        "--hostname",
        "engine",
        "--cap-drop",
        "ALL",
        "--die-with-parent",
        // Parents are mounted before the folders inside them.
        ...[...visible].toSorted().flatMap(mountArgs),
        "--proc",
        "/proc",
        "--remount-ro",
        "/",
        "--chdir",
        start.cwd,
        ...(filter ? ["--seccomp", String(FIRST_INPUT_FD)] : []),
        "--",
        start.command,
        ...start.args,
      ],
      inputs: filter ? [filter] : [],
    };
  };
  const parts = [
    "only its own files visible",
    "no network",
    "no other processes",
    ...(filter ? ["a system call filter"] : []),
  ];
  return { name: "bubblewrap", parts, enclose };
}

/** Arguments that mount a file. Links stay links, because Node finds the files of a linked package through them. */
function mountArgs(file: string): string[] {
  const isLink = lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
  return isLink && !isLibrary(file) ? ["--symlink", readlinkSync(file), file] : ["--ro-bind", file, file];
}

/** True for a library, which is often a link to another name in a folder that is not visible inside the sandbox. */
function isLibrary(file: string): boolean {
  return /\.so(\.\d+)*$/.test(file);
}

/** The dynamic loader's index of libraries. */
const LOADER_CACHE = "/etc/ld.so.cache";

const reportSchema = z.object({ sharedObjects: z.array(z.string()) });

/** Files that Node needs in order to start: its libraries, by the names under which it loads them. */
export function findRuntimeFiles(): string[] {
  // Without this, the report resolves the host names of all connections.
  Object.assign(process.report, { excludeNetwork: true });
  const { sharedObjects } = reportSchema.parse(process.report.getReport());
  return [...sharedObjects, LOADER_CACHE].filter((file) => path.isAbsolute(file) && existsSync(file));
}

interface UnshareOptions {
  /** Binaries of util-linux. */
  readonly unshare: string;
  readonly setpriv: string;
}

/**
 * Sandbox of util-linux, for systems without bubblewrap: no network, no other processes and no privileges. The disk stays
 * visible, so only Node's permission model protects the user's files.
 */
export function unshare({ unshare: binary, setpriv }: UnshareOptions): Sandbox {
  const enclose = (start: ProcessStart): ProcessStart => ({
    ...start,
    command: setpriv,
    args: [
      // When the daemon dies, unshare and its child are killed.
      "--pdeathsig",
      "KILL",
      "--",
      binary,
      "--user",
      "--map-current-user",
      "--pid",
      "--fork",
      "--kill-child=KILL",
      "--mount-proc",
      "--net",
      "--ipc",
      "--uts",
      "--",
      setpriv,
      "--no-new-privs",
      "--bounding-set=-all",
      "--inh-caps=-all",
      "--",
      start.command,
      ...start.args,
    ],
  });
  return { name: "namespaces", parts: ["no network", "no other processes", "no privileges"], enclose };
}

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
    enclose: (start, readable) => ({
      ...start,
      command: SANDBOX_EXEC,
      args: ["-p", sandboxProfile([start.command, ...readable]), start.command, ...start.args],
    }),
  };
}

/** The macOS sandbox profile of a process that may read these files and folders; the first is its program. */
function sandboxProfile(readable: readonly string[]): string {
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
