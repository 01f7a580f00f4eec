// @ts-check

/**
 * Keeps SIGUSR1 from opening Node's inspector, through which whoever may connect to it on this machine takes the
 * process over. Any process of the same account can send the signal, a hostile engine too. Node's own switch
 * (--disable-sigusr1) is one of the command line, and a program that is started already cannot set it.
 */
export function ignoreDebuggerSignal() {
  if (process.platform !== "win32") process.on("SIGUSR1", () => {});
}
