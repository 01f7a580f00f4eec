import { readFileSync } from "node:fs";
import { isRunning } from "../../engine/child-process.ts";

const POLL_INTERVAL_MS = 500;

/** Looks up processes of this machine. */
export interface ProcessTable {
  /** Process id of this process's parent. */
  currentParent(): number;
  /** Parent of another process; undefined if it has ended, or on systems without /proc. */
  parentOf(pid: number): number | undefined;
  /** True for a shell that runs one command (`sh -c …`). */
  isCommandShell(pid: number): boolean;
  isAlive(pid: number): boolean;
}

/**
 * True for a process that npm, npm start or npx has started. npm runs a shell that starts this process: a signal to npm
 * ends the shell, which does not forward it, and a killed npm leaves even the shell running.
 */
export function runsBelowNpm(env: NodeJS.ProcessEnv): boolean {
  return env["npm_lifecycle_event"] !== undefined;
}

/** Environment for a process that outlives npm: without the variable that {@link runsBelowNpm} checks. */
export function withoutNpmVariables(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { npm_lifecycle_event: _event, ...rest } = env;
  return rest;
}

/**
 * Returns a signal that aborts when the parent of this process ends, or one further up: npm above its shell, or the
 * shell above the launcher. Does not keep this process alive.
 * @param hasLauncher true when the parent is this program under an older Node
 */
export function parentExitSignal(
  hasLauncher: boolean,
  processes: ProcessTable = LOCAL_PROCESSES,
): AbortSignal {
  const controller = new AbortController();
  const parent = processes.currentParent();
  const ancestry = ancestors(parent, hasLauncher, processes);
  const timer = setInterval(() => {
    const isUnchanged =
      processes.currentParent() === parent &&
      processes.isAlive(parent) &&
      ancestry.every(([pid, expectedParent]) => processes.parentOf(pid) === expectedParent);
    if (isUnchanged) return;
    clearInterval(timer);
    controller.abort();
  }, POLL_INTERVAL_MS);
  timer.unref();
  return controller.signal;
}

/** Processes between this one and npm, each with its parent. The parent of an orphan changes. */
function ancestors(parent: number, hasLauncher: boolean, processes: ProcessTable): [number, number][] {
  const chain: [number, number][] = [];
  let pid = parent;
  let isLauncher = hasLauncher;
  while (isLauncher || processes.isCommandShell(pid)) {
    isLauncher = false;
    const next = processes.parentOf(pid);
    if (next === undefined) break;
    chain.push([pid, next]);
    pid = next;
  }
  return chain;
}

const LOCAL_PROCESSES: ProcessTable = {
  currentParent: () => process.ppid,
  parentOf(pid) {
    // "pid (name) state ppid …"; the name may contain spaces and parentheses (proc(5)).
    const fields = readProcFile(pid, "stat")
      ?.replace(/^.*\) /s, "")
      .split(" ");
    return fields?.[1] === undefined ? undefined : Number(fields[1]);
  },
  isCommandShell: (pid) => readProcFile(pid, "cmdline")?.split("\0")[1] === "-c",
  // On Windows the parent's id never changes, so only this check works there.
  isAlive: isRunning,
};

/**
 * Reads a file of /proc; undefined without one. Other systems have no shell between npm and this process, or hide it.
 */
function readProcFile(pid: number, file: "stat" | "cmdline"): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return undefined;
  }
}
