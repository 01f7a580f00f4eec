import type { ChildProcess } from "node:child_process";

/**
 * Ends a process with all that is left of its group. What puts up a wall may be gone while a process that it has begun
 * still waits for it, holding the engine's pipes open: bubblewrap does so when it is killed while it sets up.
 */
export function killGroup(child: ChildProcess): void {
  try {
    // Windows has no groups; there it throws.
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  } catch {
    child.kill("SIGKILL"); // the group is gone, or was never its own
  }
}

/** True when a process with this id exists, whoever owns it. */
export function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // A process of another user is there, but may not be asked.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
