import { readFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";

const KIB = 1024;
const MACHINE = "this machine";

/**
 * All memory limits of this process and its children: the machine's, and those of its control groups. Reads a handful of
 * small files.
 * @param root the folder that contains /proc and /sys
 */
export function memoryLimits(root = "/"): readonly MemoryLimit[] {
  return [machineLimit(root), ...cgroupLimits(root)];
}

/** Total memory in bytes: the machine's, or a control group's limit. */
export function memoryTotal(limits: readonly MemoryLimit[] = memoryLimits()): number {
  return Math.min(os.totalmem(), ...limits.map(({ bytes }) => bytes));
}

/** Memory of the machine with swap: a load that needs swap is slow, but does not end other programs. */
function machineLimit(root: string): MemoryLimit {
  const text = readSystemFile(path.join(root, "proc/meminfo")) ?? "";
  const read = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(text)?.[1]) * KIB;
  const bytes = read("MemTotal") + read("SwapTotal");
  const usedBytes = bytes - read("MemAvailable") - read("SwapFree");
  if (Number.isFinite(usedBytes)) return { name: MACHINE, bytes, usedBytes };
  // Other systems report no suitable number: their free memory does not include cached files.
  return { name: MACHINE, bytes: os.totalmem(), usedBytes: residentBytes() };
}

/** Memory limit, and how much of it is used. */
export interface MemoryLimit {
  /** Source of the limit: "this machine", or the control group and the file that sets it. */
  readonly name: string;
  readonly bytes: number;
  /** Bytes used by any process, without memory that the system can reclaim, such as cached files. */
  readonly usedBytes: number;
}

/** File names of one version of Linux's control groups. */
interface Layout {
  readonly limits: readonly string[];
  readonly used: string;
  /** Lines of memory.stat with reclaimable memory. */
  readonly reclaimable: readonly string[];
}

const LAYOUTS: Readonly<Record<"v1" | "v2", Layout>> = {
  v1: {
    limits: ["memory.limit_in_bytes"],
    used: "memory.usage_in_bytes",
    reclaimable: ["total_inactive_file", "total_active_file"],
  },
  // Above memory.high a group is throttled until it hardly runs, so it counts as a limit.
  v2: {
    limits: ["memory.max", "memory.high"],
    used: "memory.current",
    reclaimable: ["inactive_file", "active_file", "slab_reclaimable"],
  },
};

/** In version 1, a number near 2^63 means no limit. */
const NO_LIMIT_BYTES = 2 ** 60;

/** A mounted control group file system, and this process's group in it. */
interface Group {
  readonly layout: Layout;
  readonly mount: string;
  /** Path below the mount; "" for the mount itself. */
  readonly below: string;
}

/**
 * Memory limits of this process's control groups and their parents; containers are such groups. Empty if there are none.
 * @param root the folder that contains /proc and /sys
 */
function cgroupLimits(root: string): readonly MemoryLimit[] {
  return memoryGroups(root).flatMap(({ layout, mount, below }) => {
    const parts = below.split("/").filter(Boolean);
    const folders = parts.map((_part, index) => path.posix.join(mount, ...parts.slice(0, index + 1)));
    return [mount, ...folders].flatMap((folder) => limitsOf(folder, layout, root));
  });
}

function limitsOf(folder: string, layout: Layout, root: string): readonly MemoryLimit[] {
  const within = path.join(root, folder);
  const used = readNumber(path.join(within, layout.used));
  if (used === undefined) return [];
  const stat = readSystemFile(path.join(within, "memory.stat")) ?? "";
  const reclaimable = layout.reclaimable.reduce((sum, name) => sum + statValue(stat, name), 0);
  return layout.limits.flatMap((name) => {
    const bytes = readNumber(path.join(within, name));
    if (bytes === undefined || bytes >= NO_LIMIT_BYTES) return [];
    const usedBytes = Math.max(0, used - reclaimable);
    return [{ name: `this container or control group (${path.posix.join(folder, name)})`, bytes, usedBytes }];
  });
}

function memoryGroups(root: string): readonly Group[] {
  const groups = readSystemFile(path.join(root, "proc/self/cgroup")) ?? "";
  const mounts = readSystemFile(path.join(root, "proc/self/mountinfo")) ?? "";
  const groupOf = (matches: (controllers: string) => boolean): string | undefined =>
    groups
      .split("\n")
      .map((line) => /^\d+:([^:]*):(.*)$/.exec(line))
      .find((match) => match !== null && matches(match[1] ?? ""))?.[2];
  return mounts.split("\n").flatMap((line): Group[] => {
    const [, top, mount, type, options] = /^\S+ \S+ \S+ (\S+) (\S+) .* - (\S+) \S+ (\S+)$/.exec(line) ?? [];
    if (top === undefined || mount === undefined) return [];
    const isV2 = type === "cgroup2";
    if (!isV2 && !(type === "cgroup" && options?.split(",").includes("memory"))) return [];
    const group = groupOf((controllers) =>
      isV2 ? controllers === "" : controllers.split(",").includes("memory"),
    );
    return [{ layout: LAYOUTS[isV2 ? "v2" : "v1"], mount, below: pathBelowMount(top, group) }];
  });
}

/** Path of a group below the mount, whose root is the group `top`; "" for groups outside of it. */
function pathBelowMount(top: string, group: string | undefined): string {
  if (group === undefined) return "";
  const prefix = top === "/" ? "/" : `${top}/`;
  return group.startsWith(prefix) ? group.slice(prefix.length) : "";
}

/** Reads a number from a file; undefined for "max", or if there is no such file. */
function readNumber(file: string): number | undefined {
  const text = readSystemFile(file)?.trim();
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
}

function statValue(text: string, name: string): number {
  return Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
}

/**
 * Private memory of a process in bytes, without shared code and cached files; 0 if the process has ended, or if the system
 * does not report it (all but Linux).
 */
export function privateBytes(pid: number | "self"): number {
  const status = readSystemFile(`/proc/${pid}/status`) ?? "";
  const read = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1] ?? 0) * KIB;
  return read("RssAnon") + read("RssShmem");
}

/** Private memory of all child processes and their children. */
export function descendantBytes(): number {
  return childrenOf(process.pid).reduce((sum, pid) => sum + treeBytes(pid), 0);
}

function treeBytes(pid: number): number {
  return privateBytes(pid) + childrenOf(pid).reduce((sum, child) => sum + treeBytes(child), 0);
}

/** Child processes. Node starts processes only from its main thread, so the file of that thread lists all. */
function childrenOf(pid: number): readonly number[] {
  return (readSystemFile(`/proc/${pid}/task/${pid}/children`) ?? "").split(" ").filter(Boolean).map(Number);
}

/** Resident memory of this process in bytes. If the system hides /proc, its peak instead. */
export function residentBytes(read = () => process.memoryUsage.rss()): number {
  try {
    return read();
  } catch {
    return process.resourceUsage().maxRSS * KIB;
  }
}

/**
 * Reads a system file (/proc, /sys). Undefined if it does not exist, as on other systems, or is hidden, as in some
 * containers.
 */
export function readSystemFile(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
