import { readSystemFile } from "./system-file.ts";

const KIB = 1024;

/**
 * Private memory of a process in bytes, without shared code and cached files; 0 if it has ended, or if the system does not
 * report it (all but Linux).
 */
export function privateBytes(pid: number | "self"): number {
  const status = readSystemFile(`/proc/${pid}/status`) ?? "";
  const read = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1] ?? 0) * KIB;
  return read("RssAnon") + read("RssShmem");
}

/** The same for all child processes and their children. */
export function descendantBytes(): number {
  return childrenOf(process.pid).reduce((sum, pid) => sum + treeBytes(pid), 0);
}

function treeBytes(pid: number): number {
  return privateBytes(pid) + childrenOf(pid).reduce((sum, child) => sum + treeBytes(child), 0);
}

/** Node only starts processes from its main thread. */
function childrenOf(pid: number): readonly number[] {
  return (readSystemFile(`/proc/${pid}/task/${pid}/children`) ?? "").split(" ").filter(Boolean).map(Number);
}

/**
 * Resident memory of this process in bytes. If the system hides /proc, its peak instead.
 */
export function residentBytes(read = () => process.memoryUsage.rss()): number {
  try {
    return read();
  } catch {
    return process.resourceUsage().maxRSS * KIB;
  }
}
