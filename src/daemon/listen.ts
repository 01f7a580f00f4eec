import { once } from "node:events";
import { chmodSync, lstatSync, mkdirSync, rmSync, type Stats } from "node:fs";
import type { Server } from "node:http";
import net, { type ListenOptions } from "node:net";
import os from "node:os";
import path from "node:path";
import { MAX_SOCKET_PATH_BYTES } from "../config/default-paths.ts";
import { codeOrReason, exhaustedResource, isSystemError, toError } from "../errors/service-error.ts";

/** Advice for the user by system error code. */
type Advice = Readonly<Record<string, string>>;

/** Listens and waits for it. @throws DaemonStartError with advice */
async function listening(
  server: Server,
  options: ListenOptions,
  where: string,
  advice: Advice,
): Promise<void> {
  try {
    await once(server.listen(options), "listening");
  } catch (cause) {
    const code = isSystemError(cause) ? cause.code : "";
    const what = advice[code] ?? exhaustedResource(cause) ?? toError(cause).message;
    throw new DaemonStartError(`Cannot listen on ${where}: ${what}.`, { cause });
  }
}

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

/** Errors of the port, which IPv4 would not avoid. */
const PORT_ERRORS = new Set(["EADDRINUSE", "EACCES"]);

/** TCP address to listen on. */
interface TcpAddress {
  readonly addr: string;
  readonly port: number;
  /** False for the default address, which includes IPv6. */
  readonly isExplicit: boolean;
}

/**
 * Listens over TCP; with the default address also over IPv6, if the machine has it.
 * @returns the port, and the URL for clients on this machine
 * @throws DaemonStartError if it cannot listen there
 */
export async function listenTcp(
  server: Server,
  { addr, port, isExplicit: isChosen }: TcpAddress,
): Promise<{ readonly port: number; readonly url: string }> {
  const isDualStack = addr === ALL_IPV4 && !isChosen && (await listenDualStack(server, port));
  if (!isDualStack) await listenOn(server, addr, port);
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("a TCP listener has no port");
  return { port: bound.port, url: httpUrl(reachable(addr, isDualStack), bound.port) };
}

/** URL of an address; IPv6 addresses are in brackets. */
export function httpUrl(address: string, port: number): string {
  return `http://${net.isIPv6(address) ? `[${address}]` : address}:${port}`;
}

/** Listens on all IPv6 and IPv4 addresses; returns false if the machine has no IPv6. */
async function listenDualStack(server: Server, port: number): Promise<boolean> {
  try {
    await listenOn(server, ALL_IPV6, port);
    return true;
  } catch (error) {
    const cause = error instanceof Error ? error.cause : undefined;
    if (!isSystemError(cause) || PORT_ERRORS.has(cause.code)) throw error;
    return false;
  }
}

async function listenOn(server: Server, addr: string, port: number): Promise<void> {
  await listening(server, { host: addr, port, ipv6Only: false }, `${addr}, port ${port}`, ADVICE);
}

function reachable(addr: string, isDualStack: boolean): string {
  if (addr === ALL_IPV6 || (isDualStack && !hasIpv4())) return "::1";
  return addr === ALL_IPV4 ? "127.0.0.1" : addr;
}

function hasIpv4(): boolean {
  return Object.values(os.networkInterfaces()).some((all) => all?.some(({ family }) => family === "IPv4"));
}

/** Length limit of socket paths on Linux. */
const MAX_LINUX_PATH_BYTES = 107;
const OWNER_ONLY_FOLDER = 0o700;
const OWNER_ONLY_SOCKET = 0o600;
/** Umask that makes a new socket accessible to its owner only, from the beginning. */
const OWNER_ONLY_MASK = 0o177;

const PIPE_PREFIX = "\\\\.\\pipe\\";

const PIPE_ADVICE: Advice = {
  EADDRINUSE:
    'another daemon listens there. Stop it with "daybreak stop", or choose another pipe with --socket',
  EACCES: "somebody else's daemon listens there. Choose another pipe with --socket",
};

const ANOTHER_SOCKET = 'Name another with --socket or SERVICE_SOCKET, or none with SERVICE_SOCKET=""';

/** Reasons why a socket cannot be created, to follow the folder's name. */
const SOCKET_REASONS: Readonly<Record<string, string>> = {
  EACCES: "this user may not write there",
  EPERM: "this user may not write there",
  EROFS: "it is read-only",
  ENOENT: "it no longer exists",
  ENOTDIR: "a part of its path is not a folder",
  EEXIST: "a part of its path is not a folder",
  ELOOP: "its links form a loop",
  ENAMETOOLONG: "its name is too long",
  ENOSPC: "the disk is full",
  EADDRINUSE: "another program has just created its socket there",
  ENOTSUP: "its file system does not support sockets",
  EOPNOTSUPP: "its file system does not support sockets",
};

/** True for a Windows named pipe, which is no file. */
export function isNamedPipe(name: string): boolean {
  return name.startsWith(PIPE_PREFIX);
}

/**
 * Listens on a Unix socket that only its owner can open, or on a named pipe. A socket of a daemon that has died is
 * replaced.
 * @throws DaemonStartError if another daemon listens there; {@link SocketUnavailableError} if it cannot be created
 */
export async function listenIpc(server: Server, name: string, platform = process.platform): Promise<void> {
  if (isNamedPipe(name)) {
    await listening(server, { path: name }, `the named pipe ${name}`, PIPE_ADVICE);
    return;
  }
  const problem = socketPathProblem(name, platform);
  if (problem !== undefined) throw new SocketUnavailableError(`${problem} ${ANOTHER_SOCKET}.`);
  try {
    mkdirSync(path.dirname(name), { recursive: true, mode: OWNER_ONLY_FOLDER });
    await removeStale(name);
    await listenOnSocket(server, name);
  } catch (error) {
    throw explain(name, error);
  }
}

async function listenOnSocket(server: Server, name: string): Promise<void> {
  // listen() creates the socket synchronously, so the umask can be reset right after the call.
  const mask = process.umask(OWNER_ONLY_MASK);
  try {
    server.listen(name);
  } finally {
    process.umask(mask);
  }
  await once(server, "listening");
  chmodSync(name, OWNER_ONLY_SOCKET);
}

/** Reason why a socket cannot have this name on this system; undefined if it can. */
export function socketPathProblem(name: string, platform = process.platform): string | undefined {
  if (isNamedPipe(name)) return undefined;
  if (platform === "win32") {
    return `On Windows the socket is a named pipe, ${PIPE_PREFIX}daybreak for one, and ${name} is a path.`;
  }
  const maxBytes = platform === "linux" ? MAX_LINUX_PATH_BYTES : MAX_SOCKET_PATH_BYTES;
  const length = Buffer.byteLength(name);
  if (length <= maxBytes) return undefined;
  return `The socket path ${name} is ${length} bytes long; the system allows ${maxBytes}.`;
}

/** Converts a system error to one about the socket's folder. */
function explain(name: string, error: unknown): unknown {
  if (!isSystemError(error)) return error;
  const reason =
    SOCKET_REASONS[error.code] ??
    exhaustedResource(error) ??
    `the system refuses it (${codeOrReason(error)})`;
  return new SocketUnavailableError(
    `The socket cannot be created in the folder ${path.dirname(name)}: ${reason}. ${ANOTHER_SOCKET}.`,
    { cause: error },
  );
}

async function removeStale(name: string): Promise<void> {
  const stats: Stats | undefined = lstatSync(name, { throwIfNoEntry: false });
  if (!stats) return;
  if (!stats.isSocket()) {
    const kind = stats.isSymbolicLink() ? "a symbolic link" : "something that is not a socket";
    throw new SocketUnavailableError(`At the socket path ${name} is ${kind}. Remove it. ${ANOTHER_SOCKET}.`);
  }
  switch (await probeSocket(name)) {
    case "listening":
      throw new DaemonStartError(
        `Another daemon listens on ${name}. Stop it with "daybreak stop", or choose another socket with --socket.`,
      );
    case "forbidden":
      throw new SocketUnavailableError(
        `The socket ${name} belongs to another user, whose daemon may be there. ${ANOTHER_SOCKET}.`,
      );
    case "none":
      rmSync(name, { force: true });
  }
}

/** Tests whether a process accepts connections on a socket. */
async function probeSocket(name: string): Promise<"listening" | "none" | "forbidden"> {
  const socket = net.connect(name);
  try {
    await once(socket, "connect");
    return "listening";
  } catch (error) {
    const code = isSystemError(error) ? error.code : "";
    if (code === "ECONNREFUSED" || code === "ENOENT") return "none";
    if (code === "EACCES" || code === "EPERM") return "forbidden";
    // The backlog of the listener is full.
    if (code === "EAGAIN") return "listening";
    throw error;
  } finally {
    socket.destroy();
  }
}

/** Reason why the daemon cannot start, with advice for the user. */
export class DaemonStartError extends Error {
  override readonly name: string = "DaemonStartError";
}

/** Reason why the IPC socket cannot be created, other than another daemon. */
export class SocketUnavailableError extends DaemonStartError {
  override readonly name = "SocketUnavailableError";
}
