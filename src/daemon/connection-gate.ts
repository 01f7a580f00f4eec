import type { Socket } from "node:net";
import { clientOf, isLoopbackAddress } from "../http/client-address.ts";

/** Connections beyond the limit that stay open for one response with 503. */
const SURPLUS_CONNECTIONS = 16;

/**
 * Minimum idle time before a connection is dropped, since a request may be in transit, or received but not yet read.
 */
const GRACE_MS = 250;

/** Milliseconds that a surplus connection has for its request. */
const SURPLUS_MS = 5000;

interface TrackedConnection {
  readonly address: string;
  /** Running requests; an upgraded connection counts as one until it closes. */
  requests: number;
}

/**
 * Limits the connections of a listener. At the limit, the connection that has been idle longest is closed; if none is
 * idle, the new one stays open only for a response with 503.
 */
export class ConnectionGate {
  readonly #limits: ConnectionLimits;
  readonly #onFull: (connections: number) => void;
  readonly #now: () => number;
  readonly #connections = new Map<Socket, TrackedConnection>();
  /** Start times of connections without a request, the longest idle first. */
  readonly #idle = new Map<Socket, number>();
  readonly #countByAddress = new Map<string, number>();
  readonly #surplus = new Set<Socket>();

  /**
   * @param onFull called for every surplus connection
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
    if (!this.#canAccept(address)) {
      this.#onFull(this.#connections.size);
      this.#addSurplus(socket);
      return;
    }
    this.#connections.set(socket, { address, requests: 0 });
    this.#idle.set(socket, this.#now());
    this.#countByAddress.set(address, this.#count(address) + 1);
    socket.once("close", () => this.#remove(socket));
  }

  /** True for a connection beyond the limit, which gets one response and is closed. */
  isSurplus(socket: Socket): boolean {
    return this.#surplus.has(socket);
  }

  /** Records the start of a request. */
  begin(socket: Socket): void {
    const connection = this.#connections.get(socket);
    if (!connection) return;
    connection.requests++;
    this.#idle.delete(socket);
  }

  /** Records the end of a request. */
  end(socket: Socket): void {
    const connection = this.#connections.get(socket);
    if (!connection) return;
    connection.requests--;
    if (connection.requests === 0) this.#idle.set(socket, this.#now());
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

  #canAccept(address: string): boolean {
    const { total, perAddress } = this.#limits;
    // A loopback address may belong to a proxy, which forwards the requests of many clients.
    const limit = isLoopbackAddress(address) ? total : perAddress;
    if (this.#count(address) >= limit && !this.#dropIdle(address)) return false;
    return this.#connections.size < total || this.#dropIdle(undefined);
  }

  /** Closes the connection that has been idle longest, of one address or of any; false if there is none. */
  #dropIdle(address: string | undefined): boolean {
    const before = this.#now() - GRACE_MS;
    for (const [socket, since] of this.#idle) {
      if (since > before) return false;
      if (address !== undefined && this.#connections.get(socket)?.address !== address) continue;
      this.#remove(socket);
      socket.destroy();
      return true;
    }
    return false;
  }

  #remove(socket: Socket): void {
    const connection = this.#connections.get(socket);
    if (!connection) return;
    this.#connections.delete(socket);
    this.#idle.delete(socket);
    const left = this.#count(connection.address) - 1;
    if (left > 0) this.#countByAddress.set(connection.address, left);
    else this.#countByAddress.delete(connection.address);
  }

  #count(address: string): number {
    return this.#countByAddress.get(address) ?? 0;
  }
}

/** Upper limit; each connection takes about ten KiB of memory. */
const MAX_CONNECTIONS = 8192;

/** Assumed file descriptors if the number is unknown, as on Windows. */
const DEFAULT_DESCRIPTORS = 4096;

/** File descriptors reserved for engines, model files, downloads and the daemon itself. */
const MIN_RESERVE = 96;
const RESERVED_SHARE = 1 / 4;
const MAX_RESERVE = 1024;

/** Lower limit, however few file descriptors there are. */
const MIN_CONNECTIONS = 16;

/** Share of the IPC socket, which must work when all TCP connections are taken. */
const OWNER_SHARE = 1 / 8;
const MAX_OWNER_CONNECTIONS = 128;

/** Share of the TCP connections for one client address. */
const ADDRESS_SHARE = 1 / 2;

export interface ConnectionLimits {
  /** Maximum concurrent connections. */
  readonly total: number;
  /** Maximum from one client address. */
  readonly perAddress: number;
}

/**
 * Connection limits of each listener, which leave file descriptors for engines, files and downloads.
 * @param descriptors file descriptors that the process may open; undefined: unknown
 */
export function connectionLimits(
  descriptors: number | undefined,
): Readonly<Record<"tcp" | "ipc", ConnectionLimits>> {
  const all = descriptors ?? DEFAULT_DESCRIPTORS;
  const reserve = Math.max(MIN_RESERVE, Math.min(MAX_RESERVE, Math.floor(all * RESERVED_SHARE)));
  const total = Math.max(MIN_CONNECTIONS, Math.min(MAX_CONNECTIONS, all - reserve));
  const ipc = Math.min(MAX_OWNER_CONNECTIONS, Math.floor(total * OWNER_SHARE));
  const tcp = total - ipc;
  return {
    tcp: { total: tcp, perAddress: Math.ceil(tcp * ADDRESS_SHARE) },
    ipc: { total: ipc, perAddress: ipc },
  };
}
