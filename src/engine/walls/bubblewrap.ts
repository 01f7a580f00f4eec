import { existsSync, lstatSync, readlinkSync } from "node:fs";
import path from "node:path";
import { z } from "zod";
import { FIRST_INPUT_ON } from "../channel/descriptors.ts";
import { isFilteredArch, seccompFilter } from "./seccomp-filter.ts";
import type { ProcessStart, Wall, WallView } from "./wall.ts";

interface BubblewrapOptions {
  /** Its binary. */
  readonly binary: string;
  /** Files of the runtime: its libraries, and what the loader needs to find them. */
  readonly runtimeFiles: readonly string[];
  readonly arch: string;
}

/** Nobody: the number that most systems give to an account that owns nothing. */
const NOBODY = "65534";

/**
 * Bubblewrap's wall: a root of its own that holds the runtime, the engine's code and its model's files, all of them
 * read only; no network, no other process, no privilege, and a filter of system calls.
 */
export function bubblewrap({ binary, runtimeFiles, arch }: BubblewrapOptions): Wall {
  const filter = isFilteredArch(arch) ? seccompFilter(arch) : undefined;
  const enclose = (start: ProcessStart, { readable }: WallView): ProcessStart => {
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
        // What lies deeper is mounted over what lies above it.
        ...[...visible].toSorted().flatMap(show),
        "--proc",
        "/proc",
        "--remount-ro",
        "/",
        "--chdir",
        start.cwd,
        ...(filter ? ["--seccomp", String(FIRST_INPUT_ON)] : []),
        "--",
        start.command,
        ...start.args,
      ],
      inputs: filter ? [filter] : [],
    };
  };
  const parts = [
    "a view of only its own files",
    "no network",
    "no other process",
    ...(filter ? ["a filter of system calls"] : []),
  ];
  return { name: "bubblewrap", parts, enclose };
}

/** A link stays one: Node finds a package's files by where its link leads. */
function show(file: string): string[] {
  const isLink = lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
  return isLink && !isLibrary(file) ? ["--symlink", readlinkSync(file), file] : ["--ro-bind", file, file];
}

/** Libraries have names that are links to others beside them, which are not shown. */
function isLibrary(file: string): boolean {
  return /\.so(\.\d+)*$/.test(file);
}

/** The dynamic loader's index of libraries. */
const LOADER_CACHE = "/etc/ld.so.cache";

const reportSchema = z.object({ sharedObjects: z.array(z.string()) });

/** Files that Node needs in order to start: its libraries, under the names by which it loads them. */
export function runtimeFiles(): string[] {
  // Otherwise the report resolves the host names of all connections.
  Object.assign(process.report, { excludeNetwork: true });
  const { sharedObjects } = reportSchema.parse(process.report.getReport());
  return [...sharedObjects, LOADER_CACHE].filter((file) => path.isAbsolute(file) && existsSync(file));
}
