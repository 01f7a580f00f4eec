import { listProcesses } from "./list-processes.ts";

/** Process ids of the engines that a daemon has started. */
export function enginePids(daemonPid: number): number[] {
  const processes = listProcesses();
  const below = (ancestor: number): number[] =>
    processes
      .filter(({ parent }) => parent === ancestor)
      .flatMap(({ pid, commandLine }) => {
        // Processes of a sandbox name the engine that they start.
        const inner = below(pid);
        return inner.length === 0 && commandLine.includes("engine-main") ? [pid] : inner;
      });
  return below(daemonPid);
}
