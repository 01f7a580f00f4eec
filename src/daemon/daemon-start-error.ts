/** The daemon cannot start, for a reason that the user can fix; the message says how. */
export class DaemonStartError extends Error {
  override readonly name: string = "DaemonStartError";
}

/** The IPC socket cannot be created at its path, for a reason other than another daemon. */
export class SocketUnavailableError extends DaemonStartError {
  override readonly name = "SocketUnavailableError";
}
