import type { Server } from "node:http";
import net from "node:net";
import os from "node:os";
import { isSystemError } from "../errors/exhausted-resource.ts";
import { type Advice, listening } from "./listening.ts";

const ALL_IPV4 = "0.0.0.0";
const ALL_IPV6 = "::";

const ADVICE: Advice = {
  EADDRINUSE:
    'another program is using it. "daybreak doctor" says whether that is a daemon; end it, or choose another port with --http-port',
  EACCES: "this user is not allowed to. Choose port 1024 or higher with --http-port",
  EADDRNOTAVAIL: "this machine has no such address. Choose another with --http-addr",
  EAFNOSUPPORT: "this machine has no IPv6. Choose another address with --http-addr",
  ENOTFOUND: "this is not an address. Choose another with --http-addr",
};

/** Errors about the port, which would be the same with IPv4. */
const OF_THE_PORT = new Set(["EADDRINUSE", "EACCES"]);

/** Where a daemon listens over TCP. */
interface TcpPlace {
  readonly addr: string;
  readonly port: number;
  /** False if the address is the default: then 0.0.0.0 includes IPv6. */
  readonly isChosen: boolean;
}

/**
 * Listens over TCP; with the default address also over IPv6, if the machine has it.
 * @returns the port, and the URL by which this machine reaches it
 * @throws DaemonStartError when it cannot listen there
 */
export async function listenTcp(
  server: Server,
  { addr, port, isChosen }: TcpPlace,
): Promise<{ readonly port: number; readonly url: string }> {
  const isEverywhere = addr === ALL_IPV4 && !isChosen && (await listenEverywhere(server, port));
  if (!isEverywhere) await listenOn(server, addr, port);
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("a TCP listener has no port");
  return { port: bound.port, url: httpUrl(reachable(addr, isEverywhere), bound.port) };
}

/** IPv6 addresses are in brackets in a URL. */
export function httpUrl(address: string, port: number): string {
  return `http://${net.isIPv6(address) ? `[${address}]` : address}:${port}`;
}

/** False if the machine has no IPv6; IPv4 clients can reach such a listener as well. */
async function listenEverywhere(server: Server, port: number): Promise<boolean> {
  try {
    await listenOn(server, ALL_IPV6, port);
    return true;
  } catch (error) {
    const cause = error instanceof Error ? error.cause : undefined;
    if (!isSystemError(cause) || OF_THE_PORT.has(cause.code)) throw error;
    return false;
  }
}

function listenOn(server: Server, addr: string, port: number): Promise<void> {
  const where = `${addr}, port ${port}`;
  return listening(server, () => server.listen({ host: addr, port, ipv6Only: false }), where, ADVICE);
}

function reachable(addr: string, isEverywhere: boolean): string {
  if (addr === ALL_IPV6 || (isEverywhere && !hasIpv4())) return "::1";
  return addr === ALL_IPV4 ? "127.0.0.1" : addr;
}

function hasIpv4(): boolean {
  return Object.values(os.networkInterfaces()).some((all) => all?.some(({ family }) => family === "IPv4"));
}
