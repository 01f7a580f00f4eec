/** The daemon cannot start for a reason that its user can do something about; the message says what. */
export class DaemonStartError extends Error {
  override readonly name: string = "DaemonStartError";
}

/** The IPC socket cannot be made at its path, and not because of another daemon. */
export class SocketUnavailableError extends DaemonStartError {
  override readonly name = "SocketUnavailableError";
}
