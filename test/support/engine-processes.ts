import { listProcesses } from "./list-processes.ts";

/** Processes of one model's engine. */
interface EngineProcesses {
  /** That which runs llama.cpp. */
  readonly engine: readonly number[];
  /** The outermost one of its wall; the engine itself where there is none. */
  readonly wall: readonly number[];
}

/** Finds an engine by the model's file, which its command line names as do those of the walls around it. */
export function engineProcesses(modelFile: string): EngineProcesses {
  const found = listProcesses().filter(
    ({ commandLine }) => commandLine.includes("engine-main") && commandLine.includes(modelFile),
  );
  const pids = new Set(found.map(({ pid }) => pid));
  const parents = new Set(found.map(({ parent }) => parent));
  return {
    engine: [...pids].filter((pid) => !parents.has(pid)),
    wall: found.filter(({ parent }) => !pids.has(parent)).map(({ pid }) => pid),
  };
}
