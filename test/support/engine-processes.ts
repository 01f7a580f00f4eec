import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** Processes of one model's engine. */
interface EngineProcesses {
  /** That which runs llama.cpp. */
  readonly engine: readonly number[];
  /** The outermost one of its wall; the engine itself where there is none. */
  readonly wall: readonly number[];
}

const run = promisify(execFile);

/** Finds an engine by the model's file, which its command line names as do those of the walls around it. */
export async function engineProcesses(modelFile: string): Promise<EngineProcesses> {
  const { stdout } = await run("ps", ["-A", "-ww", "-o", "pid=,ppid=,args="], {
    maxBuffer: 64 * 1024 * 1024,
  });
  const rows = stdout
    .split("\n")
    .filter((row) => row.includes("engine-main") && row.includes(modelFile))
    .map((row) => {
      const [pid = "", ppid = ""] = row.trim().split(/\s+/, 2);
      return { pid: Number(pid), ppid: Number(ppid) };
    });
  const pids = new Set(rows.map(({ pid }) => pid));
  const parents = new Set(rows.map(({ ppid }) => ppid));
  return {
    engine: [...pids].filter((pid) => !parents.has(pid)),
    wall: rows.filter(({ ppid }) => !pids.has(ppid)).map(({ pid }) => pid),
  };
}
