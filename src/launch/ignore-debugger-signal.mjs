// @ts-check

/**
 * Prevents SIGUSR1 from opening Node's inspector, through which any user of this machine can take over the process. Any
 * process of the same account can send the signal, including a hostile engine. Node's flag --disable-sigusr1 works only on
 * the command line, so a running program cannot set it.
 */
export function ignoreDebuggerSignal() {
  if (process.platform !== "win32") process.on("SIGUSR1", () => {});
}
