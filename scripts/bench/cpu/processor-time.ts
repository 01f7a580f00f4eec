import { existsSync, readdirSync, readFileSync } from "node:fs";

/** Clock that rates are counted by; processor: running time of the engine's threads, divided by their number. */
export type Clock = "wall" | "processor";

/**
 * Milliseconds by the chosen clock. Only differences mean anything.
 * @throws Error when the system does not tell the processor time of another process; Linux does
 */
export function readClock(clock: Clock, pid: number, threads: number): number {
  return clock === "wall" ? performance.now() : processorMs(pid) / threads;
}

/**
 * Processor time that all threads of a process have had; the first number of schedstat counts nanoseconds.
 * @throws Error as {@link readClock}
 */
export function processorMs(pid: number): number {
  const tasks = `/proc/${pid}/task`;
  if (!existsSync(tasks)) throw new Error("this system does not tell processor times; use --clock wall");
  const nanoseconds = readdirSync(tasks).map((task) =>
    Number(readFileSync(`${tasks}/${task}/schedstat`, "utf8").split(" ")[0]),
  );
  return nanoseconds.reduce((sum, each) => sum + each, 0) / 1e6;
}
