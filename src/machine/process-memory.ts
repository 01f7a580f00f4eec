import { readSystemFile } from "./system-file.ts";

const KIB = 1024;

/**
 * Bytes that a process has for itself, its share of programs and cached files left out; 0 when it is gone, or when
 * the system does not tell (all but Linux).
 */
export function privateBytes(pid: number | "self"): number {
  const status = readSystemFile(`/proc/${pid}/status`) ?? "";
  const read = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1] ?? 0) * KIB;
  return read("RssAnon") + read("RssShmem");
}

/** The same of all processes that this one has started, and of those that they have started. */
export function descendantBytes(): number {
  return childrenOf(process.pid).reduce((sum, pid) => sum + treeBytes(pid), 0);
}

function treeBytes(pid: number): number {
  return privateBytes(pid) + childrenOf(pid).reduce((sum, child) => sum + treeBytes(child), 0);
}

/** Node starts processes from its main thread alone. */
function childrenOf(pid: number): readonly number[] {
  return (readSystemFile(`/proc/${pid}/task/${pid}/children`) ?? "").split(" ").filter(Boolean).map(Number);
}

/**
 * Bytes of memory that this process has now. Where the system hides /proc that is not known: then the most that it has
 * had.
 */
export function residentBytes(read = () => process.memoryUsage.rss()): number {
  try {
    return read();
  } catch {
    return process.resourceUsage().maxRSS * KIB;
  }
}
