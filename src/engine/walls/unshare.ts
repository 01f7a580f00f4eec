import type { ProcessStart, Wall } from "./wall.ts";

export interface UnshareOptions {
  /** Binaries of util-linux. */
  readonly unshare: string;
  readonly setpriv: string;
}

/**
 * The wall of util-linux, where there is no bubblewrap: no network, no other process and no privilege. The disk is as
 * the account sees it, so only Node keeps an engine from its files.
 */
export function unshare({ unshare: binary, setpriv }: UnshareOptions): Wall {
  const enclose = (start: ProcessStart): ProcessStart => ({
    ...start,
    command: setpriv,
    args: [
      // Whatever ends the daemon ends unshare, and that its child.
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
  return { name: "namespaces", parts: ["no network", "no other process", "no privilege"], enclose };
}
