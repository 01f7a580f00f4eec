import type { Socket } from "node:net";
import { clientOf, isLoopbackAddress } from "../http/client-address.ts";

/** Connections beyond the limit that are kept just long enough to be told so. */
const SURPLUS_CONNECTIONS = 16;

/**
 * Minimum idle time before a connection is dropped: a request may be on its way, or arrived but not read yet.
 */
const GRACE_MS = 250;

/** How long a surplus connection has for its one request, in milliseconds. */
const SURPLUS_MS = 5000;

interface Guest {
  readonly address: string;
  /** Current requests on it; an upgraded connection has one until it closes. */
  requests: number;
}

/**
 * Limits the connections of a listener. When the limit is reached, the connection that has been idle longest is closed; if
 * none is idle, the new one is only kept until it has been told so.
 */
export class ConnectionGate {
  readonly #limits: ConnectionLimits;
  readonly #onFull: (connections: number) => void;
  readonly #now: () => number;
  readonly #guests = new Map<Socket, Guest>();
  /** Connections without a request, the longest idle first, and since when. */
  readonly #idle = new Map<Socket, number>();
  readonly #ofAddress = new Map<string, number>();
  readonly #surplus = new Set<Socket>();

  /**
   * @param onFull called for every connection that is turned away
   * @param now milliseconds since any origin
   */
  constructor(
    limits: ConnectionLimits,
    onFull: (connections: number) => void,
    now: () => number = () => performance.now(),
  ) {
    this.#limits = limits;
    this.#onFull = onFull;
    this.#now = now;
  }

  /** Registers a new connection. */
  enter(socket: Socket): void {
    const address = clientOf(socket.remoteAddress);
    if (!this.#hasRoom(address)) {
      this.#onFull(this.#guests.size);
      this.#addSurplus(socket);
      return;
    }
    this.#guests.set(socket, { address, requests: 0 });
    this.#idle.set(socket, this.#now());
    this.#ofAddress.set(address, this.#count(address) + 1);
    socket.once("close", () => this.#leave(socket));
  }

  /** Whether a connection is beyond the limit: it gets an answer that says so, and is closed. */
  isSurplus(socket: Socket): boolean {
    return this.#surplus.has(socket);
  }

  /** A request has begun on it. */
  begin(socket: Socket): void {
    const guest = this.#guests.get(socket);
    if (!guest) return;
    guest.requests++;
    this.#idle.delete(socket);
  }

  /** A request on it has ended. */
  end(socket: Socket): void {
    const guest = this.#guests.get(socket);
    if (!guest) return;
    guest.requests--;
    if (guest.requests === 0) this.#idle.set(socket, this.#now());
  }

  #addSurplus(socket: Socket): void {
    const [oldest] = this.#surplus;
    if (oldest && this.#surplus.size >= SURPLUS_CONNECTIONS) {
      this.#surplus.delete(oldest);
      oldest.destroy();
    }
    this.#surplus.add(socket);
    const timer = setTimeout(() => socket.destroy(), SURPLUS_MS).unref();
    socket.once("close", () => {
      clearTimeout(timer);
      this.#surplus.delete(socket);
    });
  }

  #hasRoom(address: string): boolean {
    const { total, perAddress } = this.#limits;
    // This machine's own address may be a proxy with everybody's requests.
    const most = isLoopbackAddress(address) ? total : perAddress;
    if (this.#count(address) >= most && !this.#dropIdle(address)) return false;
    return this.#guests.size < total || this.#dropIdle(undefined);
  }

  /** Closes the connection that has been idle longest, of one address or of any; false if there is none. */
  #dropIdle(address: string | undefined): boolean {
    const before = this.#now() - GRACE_MS;
    for (const [socket, since] of this.#idle) {
      if (since > before) return false;
      if (address !== undefined && this.#guests.get(socket)?.address !== address) continue;
      this.#leave(socket);
      socket.destroy();
      return true;
    }
    return false;
  }

  #leave(socket: Socket): void {
    const guest = this.#guests.get(socket);
    if (!guest) return;
    this.#guests.delete(socket);
    this.#idle.delete(socket);
    const left = this.#count(guest.address) - 1;
    if (left > 0) this.#ofAddress.set(guest.address, left);
    else this.#ofAddress.delete(guest.address);
  }

  #count(address: string): number {
    return this.#ofAddress.get(address) ?? 0;
  }
}

/** No machine with a language model can serve more, and each costs some ten KiB of memory. */
const MAX_CONNECTIONS = 8192;

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
const MAX_OWNER_CONNECTIONS = 128;

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
  const total = Math.max(FEWEST_CONNECTIONS, Math.min(MAX_CONNECTIONS, all - reserve));
  const ipc = Math.min(MAX_OWNER_CONNECTIONS, Math.floor(total * OWNER_SHARE));
  const tcp = total - ipc;
  return {
    tcp: { total: tcp, perAddress: Math.ceil(tcp * ADDRESS_SHARE) },
    ipc: { total: ipc, perAddress: ipc },
  };
}
