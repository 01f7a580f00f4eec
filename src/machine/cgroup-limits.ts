import path from "node:path";
import { readSystemFile } from "./system-file.ts";

/** Memory that something bounds, and how much of it is taken. */
export interface MemoryLimit {
  /** Whose it is, for people: "this machine", or the control group with the file that sets the limit. */
  readonly name: string;
  readonly bytes: number;
  /** By whomever; what the system takes back when it is needed, such as cached files, does not count. */
  readonly usedBytes: number;
}

/** Files of one version of Linux's control groups. */
interface Layout {
  readonly limits: readonly string[];
  readonly used: string;
  /** Lines of memory.stat: what the system takes back before anybody lacks memory. */
  readonly reclaimable: readonly string[];
}

const LAYOUTS: Readonly<Record<"v1" | "v2", Layout>> = {
  v1: {
    limits: ["memory.limit_in_bytes"],
    used: "memory.usage_in_bytes",
    reclaimable: ["total_inactive_file", "total_active_file"],
  },
  // Above memory.high a group is slowed down until it hardly moves: for an engine that is no better than the end.
  v2: {
    limits: ["memory.max", "memory.high"],
    used: "memory.current",
    reclaimable: ["inactive_file", "active_file", "slab_reclaimable"],
  },
};

/** Version 1 says "none" by a number near 2^63. */
const NO_LIMIT_BYTES = 2 ** 60;

/** A folder of control groups as it is mounted, and this process's group in it. */
interface Group {
  readonly layout: Layout;
  readonly mount: string;
  /** Below the mount; "" for the mount itself. */
  readonly below: string;
}

/**
 * The limits of memory of the control groups that this process is in, those around them included; containers are such
 * groups. Empty where there are none.
 * @param root the folder in which /proc and /sys lie
 */
export function cgroupLimits(root = "/"): readonly MemoryLimit[] {
  return memoryGroups(root).flatMap(({ layout, mount, below }) => {
    const parts = below.split("/").filter(Boolean);
    const folders = parts.map((_part, index) => path.posix.join(mount, ...parts.slice(0, index + 1)));
    return [mount, ...folders].flatMap((folder) => limitsOf(folder, layout, root));
  });
}

function limitsOf(folder: string, layout: Layout, root: string): readonly MemoryLimit[] {
  const within = path.join(root, folder);
  const used = number(path.join(within, layout.used));
  if (used === undefined) return [];
  const stat = readSystemFile(path.join(within, "memory.stat")) ?? "";
  const reclaimable = layout.reclaimable.reduce((sum, name) => sum + lineValue(stat, name), 0);
  return layout.limits.flatMap((name) => {
    const bytes = number(path.join(within, name));
    if (bytes === undefined || bytes >= NO_LIMIT_BYTES) return [];
    const usedBytes = Math.max(0, used - reclaimable);
    return [{ name: `this container or control group (${path.posix.join(folder, name)})`, bytes, usedBytes }];
  });
}

function memoryGroups(root: string): readonly Group[] {
  const own = readSystemFile(path.join(root, "proc/self/cgroup")) ?? "";
  const mounts = readSystemFile(path.join(root, "proc/self/mountinfo")) ?? "";
  const groupOf = (isIt: (controllers: string) => boolean): string | undefined =>
    own
      .split("\n")
      .map((line) => /^\d+:([^:]*):(.*)$/.exec(line))
      .find((match) => match !== null && isIt(match[1] ?? ""))?.[2];
  return mounts.split("\n").flatMap((line): Group[] => {
    const [, top, mount, type, options] = /^\S+ \S+ \S+ (\S+) (\S+) .* - (\S+) \S+ (\S+)$/.exec(line) ?? [];
    if (top === undefined || mount === undefined) return [];
    if (type === "cgroup2") {
      const group = groupOf((controllers) => controllers === "");
      return [{ layout: LAYOUTS.v2, mount, below: relative(top, group) }];
    }
    if (type !== "cgroup" || !options?.split(",").includes("memory")) return [];
    const group = groupOf((controllers) => controllers.split(",").includes("memory"));
    return [{ layout: LAYOUTS.v1, mount, below: relative(top, group) }];
  });
}

/** Where a group is below the mount, which shows it from `top` on; a group elsewhere is the mount's own top. */
function relative(top: string, group: string | undefined): string {
  if (group === undefined) return "";
  const prefix = top === "/" ? "/" : `${top}/`;
  return group.startsWith(prefix) ? group.slice(prefix.length) : "";
}

/** Undefined for "max", and where there is no such file. */
function number(file: string): number | undefined {
  const text = readSystemFile(file)?.trim();
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
}

function lineValue(text: string, name: string): number {
  return Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
}
