/** The daemon cannot start for a reason that its user can do something about; the message says what. */
export class DaemonStartError extends Error {
  override readonly name = "DaemonStartError";
}
