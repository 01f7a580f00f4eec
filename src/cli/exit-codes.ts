/** What the program's exit code says; part of its interface, listed in docs/cli.md. */
export const EXIT = {
  ok: 0,
  /** Anything without a more specific code. */
  error: 1,
  /** What was given is wrong: the command line, the configuration, a name, a value, a Modelfile; nothing was done. */
  usage: 2,
  /** No daemon answers. */
  noDaemon: 3,
  /** No such model, file or route. */
  notFound: 4,
  /** The model is in a state that does not allow it: loaded already, not loaded, exists already, busy. */
  conflict: 5,
  /** The daemon or the hub cannot do it now; the same command may succeed later. */
  tryLater: 6,
  /** The terminal went away: 128 + SIGHUP. */
  hungUp: 129,
  /** Ctrl-C: 128 + SIGINT. */
  interrupted: 130,
  /** The reader of the output is gone: 128 + SIGPIPE. */
  brokenPipe: 141,
  /** 128 + SIGTERM. */
  terminated: 143,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
