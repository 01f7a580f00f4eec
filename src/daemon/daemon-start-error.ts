/** The daemon cannot start for a reason that its user can do something about; the message says what. */
export class DaemonStartError extends Error {
  override readonly name: string = "DaemonStartError";
}

/** The IPC socket cannot be had at its path, and no other daemon is why. */
export class SocketUnavailableError extends DaemonStartError {
  override readonly name = "SocketUnavailableError";
}
