import { execFileSync } from "node:child_process";

/** Process ids of the engines that a daemon has started. */
export function enginePids(daemonPid: number): number[] {
  const rows = execFileSync("ps", ["-A", "-o", "pid=,ppid=,args="], { encoding: "utf8" }).split("\n");
  const processes = rows.map((row) => {
    const [pid = "", ppid = "", ...args] = row.trim().split(/\s+/);
    return { pid: Number(pid), ppid: Number(ppid), isEngine: args.join(" ").includes("engine-main") };
  });
  const below = (parent: number): number[] =>
    processes
      .filter(({ ppid }) => ppid === parent)
      .flatMap(({ pid, isEngine }) => {
        // A wall's processes name the engine that they start.
        const inner = below(pid);
        return inner.length === 0 && isEngine ? [pid] : inner;
      });
  return below(daemonPid);
}
