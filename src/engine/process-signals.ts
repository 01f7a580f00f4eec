import type { ChildProcess } from "node:child_process";

/**
 * Kills a process and the rest of its group. When bubblewrap is killed during setup, a child of it may keep waiting and
 * hold the engine's pipes open.
 */
export function killGroup(child: ChildProcess): void {
  try {
    // Throws on Windows, which does not have process groups.
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  } catch {
    child.kill("SIGKILL"); // the group does not exist
  }
}

/** True when a process with this id exists, whoever owns it. */
export function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // The process exists but belongs to another user.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
