// @ts-check

/**
 * Keeps SIGUSR1 from opening Node's inspector, because anyone who can connect to it on this machine can take over the
 * process. Any process of the same account can send the signal, including a hostile engine. Node's own flag,
 * --disable-sigusr1, works on the command line only, so a running program cannot set it.
 */
export function ignoreDebuggerSignal() {
  if (process.platform !== "win32") process.on("SIGUSR1", () => {});
}
