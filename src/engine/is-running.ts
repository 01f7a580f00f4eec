/** True when there is a process of this id, whoever's it is. */
export function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // A process of another user is there, but may not be asked.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
