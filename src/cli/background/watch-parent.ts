import { readFileSync } from "node:fs";
import { isRunning } from "../../engine/child-process.ts";

/** An orphaned daemon does no harm for this long. */
const LOOK_MS = 500;

/** Looks up processes of this machine. */
export interface ProcessTable {
  /** The parent of this process. */
  ownParent(): number;
  /** The parent of another process; undefined where the system does not tell cheaply, or when it is gone. */
  parentOf(pid: number): number | undefined;
  /** True for a shell that runs one command for somebody (`sh -c …`). */
  isCommandShell(pid: number): boolean;
  isAlive(pid: number): boolean;
}

/**
 * True below a package manager's script, npm start or npx. When npm is asked to end it ends the shell between it
 * and us, and the shell does not pass that on; when npm is killed, the shell does not even notice.
 */
export function runsBelowNpm(env: NodeJS.ProcessEnv): boolean {
  return env["npm_lifecycle_event"] !== undefined;
}

/** The environment without what {@link runsBelowNpm} goes by: for a process that is to outlive npm. */
export function withoutNpm(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { npm_lifecycle_event: _event, ...rest } = env;
  return rest;
}

/**
 * Aborted when the parent of this process is gone, or its grandparent: npm above its shell, or the shell above the
 * launcher. Does not keep this process alive.
 * @param hasLauncher true when the parent is this program under an older Node
 */
export function parentGone(hasLauncher: boolean, look: ProcessTable = THIS_MACHINE): AbortSignal {
  const controller = new AbortController();
  const parent = look.ownParent();
  const others = ancestors(parent, hasLauncher, look);
  const timer = setInterval(() => {
    const isHere =
      look.ownParent() === parent &&
      look.isAlive(parent) &&
      others.every(([pid, itsParent]) => look.parentOf(pid) === itsParent);
    if (isHere) return;
    clearInterval(timer);
    controller.abort();
  }, LOOK_MS);
  timer.unref();
  return controller.signal;
}

/** Processes between this one and npm, each with the parent that it must keep: an orphan gets another. */
function ancestors(parent: number, hasLauncher: boolean, look: ProcessTable): [number, number][] {
  const chain: [number, number][] = [];
  let pid = parent;
  let mayGoOn = hasLauncher;
  while (mayGoOn || look.isCommandShell(pid)) {
    mayGoOn = false;
    const next = look.parentOf(pid);
    if (next === undefined) break;
    chain.push([pid, next]);
    pid = next;
  }
  return chain;
}

const THIS_MACHINE: ProcessTable = {
  ownParent: () => process.ppid,
  parentOf(pid) {
    // "pid (name) state ppid …", where the name may hold anything (proc(5)).
    const fields = readProcess(pid, "stat")
      ?.replace(/^.*\) /s, "")
      .split(" ");
    return fields?.[1] === undefined ? undefined : Number(fields[1]);
  },
  isCommandShell: (pid) => readProcess(pid, "cmdline")?.split("\0")[1] === "-c",
  // On Windows the parent's id never changes: this alone tells.
  isAlive: isRunning,
};

/** A file of /proc, which Linux has; elsewhere the shell of npm is replaced by its command, or not to be seen. */
function readProcess(pid: number, file: "stat" | "cmdline"): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return undefined;
  }
}
