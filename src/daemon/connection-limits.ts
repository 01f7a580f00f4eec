/** More than this serve no machine with a language model, and each costs some ten KiB of memory. */
const MOST_CONNECTIONS = 8192;

/** Where nobody can tell how many descriptors there are, as on Windows. */
const USUAL_DESCRIPTORS = 4096;

/** Descriptors that stay free for engines, model files, downloads and the daemon's own, whatever arrives. */
const SMALLEST_RESERVE = 96;
const RESERVED_SHARE = 1 / 4;
const LARGEST_RESERVE = 1024;

/** However few descriptors there are: a daemon that accepts no connection is useless. */
const FEWEST_CONNECTIONS = 16;

/** What the owner's socket has for itself, so that it answers when strangers have taken all the rest. */
const OWNER_SHARE = 1 / 8;
const MOST_OWNER_CONNECTIONS = 128;

/** One address may hold this much of the rest: the rest is left for others. */
const ADDRESS_SHARE = 1 / 2;

export interface ConnectionLimits {
  /** Connections at one time. */
  readonly total: number;
  /** Of one client address. */
  readonly perAddress: number;
}

/**
 * How many connections each listener keeps, so that descriptors are left to work with.
 * @param descriptors what the process may have open; undefined: nobody knows
 */
export function connectionLimits(
  descriptors: number | undefined,
): Readonly<Record<"tcp" | "ipc", ConnectionLimits>> {
  const all = descriptors ?? USUAL_DESCRIPTORS;
  const reserve = Math.max(SMALLEST_RESERVE, Math.min(LARGEST_RESERVE, Math.floor(all * RESERVED_SHARE)));
  const total = Math.max(FEWEST_CONNECTIONS, Math.min(MOST_CONNECTIONS, all - reserve));
  const ipc = Math.min(MOST_OWNER_CONNECTIONS, Math.floor(total * OWNER_SHARE));
  const tcp = total - ipc;
  return {
    tcp: { total: tcp, perAddress: Math.ceil(tcp * ADDRESS_SHARE) },
    ipc: { total: ipc, perAddress: ipc },
  };
}
