/** No machine with a language model can serve more, and each costs some ten KiB of memory. */
const MOST_CONNECTIONS = 8192;

/** If the number of file descriptors is unknown, as on Windows. */
const USUAL_DESCRIPTORS = 4096;

/** File descriptors reserved for engines, model files, downloads and the daemon itself. */
const SMALLEST_RESERVE = 96;
const RESERVED_SHARE = 1 / 4;
const LARGEST_RESERVE = 1024;

/** The minimum, however few file descriptors there are. */
const FEWEST_CONNECTIONS = 16;

/** Reserved for the owner's socket, so that it works when all other connections are taken. */
const OWNER_SHARE = 1 / 8;
const MOST_OWNER_CONNECTIONS = 128;

/** Share of the others that one address may have. */
const ADDRESS_SHARE = 1 / 2;

export interface ConnectionLimits {
  /** Concurrent connections. */
  readonly total: number;
  /** From one client address. */
  readonly perAddress: number;
}

/**
 * The connection limits of each listener, which leave enough file descriptors for everything else.
 * @param descriptors file descriptors that the process may open; undefined: unknown
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
