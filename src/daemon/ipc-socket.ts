import { chmodSync, lstatSync, mkdirSync, rmSync, type Stats } from "node:fs";
import type { Server } from "node:http";
import net from "node:net";
import path from "node:path";
import { LONGEST_SOCKET_PATH } from "../config/default-socket.ts";
import { exhaustedResource, isSystemError } from "../errors/exhausted-resource.ts";
import { codeOrReason } from "../errors/reason-of.ts";
import { DaemonStartError, SocketUnavailableError } from "./daemon-start-error.ts";
import { type Advice, listening } from "./listening.ts";

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
