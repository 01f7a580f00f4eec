import { chmodSync, lstatSync, mkdirSync, rmSync, type Stats } from "node:fs";
import type { Server } from "node:http";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { LONGEST_SOCKET_PATH } from "../config/default-paths.ts";
import { codeOrReason } from "../errors/reason-of.ts";
import { exhaustedResource, isSystemError } from "../errors/service-error.ts";

/** What to do about a failure, by the system's error code. */
export type Advice = Readonly<Record<string, string>>;

/** Calls `listen` and waits for it; if it fails, the error says what to do. */
export function listening(server: Server, listen: () => void, where: string, advice: Advice): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (cause: NodeJS.ErrnoException): void => {
      const what = advice[cause.code ?? ""] ?? exhaustedResource(cause) ?? cause.message;
      server.off("listening", onListening);
      reject(new DaemonStartError(`Cannot listen on ${where}: ${what}.`, { cause }));
    };
    const onListening = (): void => {
      server.off("error", onError);
      resolve();
    };
    server.once("error", onError);
    server.once("listening", onListening);
    listen();
  });
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

/** Linux allows a little more than others, in bytes. */
const LONGEST_ON_LINUX = 107;
const OWNER_ONLY_FOLDER = 0o700;
const OWNER_ONLY_SOCKET = 0o600;
/** With this umask, a new socket is accessible to its owner only, from the beginning. */
const OWNER_ONLY_MASK = 0o177;

const PIPE_PREFIX = "\\\\.\\pipe\\";

const PIPE_ADVICE: Advice = {
  EADDRINUSE:
    'another daemon listens there. Stop it with "daybreak stop", or choose another pipe with --socket',
  EACCES: "somebody else's daemon listens there. Choose another pipe with --socket",
};

const ANOTHER = 'Name another with --socket or SERVICE_SOCKET, or none with SERVICE_SOCKET=""';

/** Why a socket cannot be created in a folder, to follow the folder's name. */
const REASONS: Readonly<Record<string, string>> = {
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

/** Whether the name is that of a Windows named pipe, which is not a file. */
export function isNamedPipe(name: string): boolean {
  return name.startsWith(PIPE_PREFIX);
}

/**
 * Listens on a Unix socket that only its owner can open, or on a named pipe. A socket left by a dead daemon is replaced.
 * @throws DaemonStartError if another daemon listens there, a {@link SocketUnavailableError} if it cannot be created
 */
export async function listenIpc(server: Server, name: string, platform = process.platform): Promise<void> {
  if (isNamedPipe(name)) {
    await listening(server, () => server.listen(name), `the named pipe ${name}`, PIPE_ADVICE);
    return;
  }
  const problem = socketPathProblem(name, platform);
  if (problem !== undefined) throw new SocketUnavailableError(`${problem} ${ANOTHER}.`);
  try {
    mkdirSync(path.dirname(name), { recursive: true, mode: OWNER_ONLY_FOLDER });
    await removeStale(name);
    await listenOnSocket(server, name);
  } catch (error) {
    throw explain(name, error);
  }
}

async function listenOnSocket(server: Server, name: string): Promise<void> {
  // listen() creates the socket synchronously, so the umask is not needed any longer.
  const mask = process.umask(OWNER_ONLY_MASK);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(name, () => {
        server.off("error", reject);
        resolve();
      });
      process.umask(mask);
    });
  } finally {
    process.umask(mask);
  }
  chmodSync(name, OWNER_ONLY_SOCKET);
}

/** Why a socket cannot have this name on this system; undefined if it can. */
export function socketPathProblem(name: string, platform = process.platform): string | undefined {
  if (isNamedPipe(name)) return undefined;
  if (platform === "win32") {
    return `On Windows the socket is a named pipe, ${PIPE_PREFIX}daybreak for one, and ${name} is a path.`;
  }
  const longest = platform === "linux" ? LONGEST_ON_LINUX : LONGEST_SOCKET_PATH;
  const length = Buffer.byteLength(name);
  if (length <= longest) return undefined;
  return `The socket path ${name} is ${length} bytes long; the system allows ${longest}.`;
}

/** The system's error as a sentence about the socket's folder. */
function explain(name: string, error: unknown): unknown {
  if (!isSystemError(error)) return error;
  const reason =
    REASONS[error.code] ?? exhaustedResource(error) ?? `the system refuses it (${codeOrReason(error)})`;
  return new SocketUnavailableError(
    `The socket cannot be created in the folder ${path.dirname(name)}: ${reason}. ${ANOTHER}.`,
    { cause: error },
  );
}

async function removeStale(name: string): Promise<void> {
  const stats: Stats | undefined = lstatSync(name, { throwIfNoEntry: false });
  if (!stats) return;
  if (!stats.isSocket()) {
    const kind = stats.isSymbolicLink() ? "a symbolic link" : "something that is not a socket";
    throw new SocketUnavailableError(`At the socket path ${name} is ${kind}. Remove it. ${ANOTHER}.`);
  }
  switch (await answerOf(name)) {
    case "somebody":
      throw new DaemonStartError(
        `Another daemon listens on ${name}. Stop it with "daybreak stop", or choose another socket with --socket.`,
      );
    case "forbidden":
      throw new SocketUnavailableError(
        `The socket ${name} belongs to another user, whose daemon may be there. ${ANOTHER}.`,
      );
    case "nobody":
      rmSync(name, { force: true });
  }
}

/** Whether a process accepts connections on the socket, as far as this user may know. */
function answerOf(name: string): Promise<"somebody" | "nobody" | "forbidden"> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(name);
    socket.once("connect", () => {
      socket.destroy();
      resolve("somebody");
    });
    socket.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ECONNREFUSED" || error.code === "ENOENT") resolve("nobody");
      else if (error.code === "EACCES" || error.code === "EPERM") resolve("forbidden");
      // Its backlog is full.
      else if (error.code === "EAGAIN") resolve("somebody");
      else reject(error);
    });
  });
}

/** The daemon cannot start, for a reason that the user can fix; the message says how. */
export class DaemonStartError extends Error {
  override readonly name: string = "DaemonStartError";
}

/** The IPC socket cannot be created at its path, for a reason other than another daemon. */
export class SocketUnavailableError extends DaemonStartError {
  override readonly name = "SocketUnavailableError";
}
