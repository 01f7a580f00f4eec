import { listProcesses } from "./list-processes.ts";

/** Processes of one model's engine. */
interface EngineProcesses {
  /** That which runs llama.cpp. */
  readonly engine: readonly number[];
  /** Processes from the outermost one of its sandbox inward; the engine itself where there is none. */
  readonly sandbox: readonly number[];
}

/** Finds an engine by the model's file, which is on its command line and on those of the sandbox around it. */
export function engineProcesses(modelFile: string): EngineProcesses {
  const found = listProcesses().filter(
    ({ commandLine }) => commandLine.includes("engine-main") && commandLine.includes(modelFile),
  );
  const pids = new Set(found.map(({ pid }) => pid));
  const parents = new Set(found.map(({ parent }) => parent));
  return {
    engine: [...pids].filter((pid) => !parents.has(pid)),
    sandbox: found.filter(({ parent }) => !pids.has(parent)).map(({ pid }) => pid),
  };
}
