import type { ProcessStart, Wall } from "./wall.ts";

interface UnshareOptions {
  /** Binaries of util-linux. */
  readonly unshare: string;
  readonly setpriv: string;
}

/**
 * The util-linux wall, for systems without bubblewrap: no network, no other processes and no privileges. The disk stays
 * visible, so only Node's permission model protects the user's files.
 */
export function unshare({ unshare: binary, setpriv }: UnshareOptions): Wall {
  const enclose = (start: ProcessStart): ProcessStart => ({
    ...start,
    command: setpriv,
    args: [
      // When the daemon dies, unshare and its child are killed.
      "--pdeathsig",
      "KILL",
      "--",
      binary,
      "--user",
      "--map-current-user",
      "--pid",
      "--fork",
      "--kill-child=KILL",
      "--mount-proc",
      "--net",
      "--ipc",
      "--uts",
      "--",
      setpriv,
      "--no-new-privs",
      "--bounding-set=-all",
      "--inh-caps=-all",
      "--",
      start.command,
      ...start.args,
    ],
  });
  return { name: "namespaces", parts: ["no network", "no other processes", "no privileges"], enclose };
}
