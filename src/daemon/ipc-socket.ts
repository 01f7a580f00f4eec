import { chmodSync, lstatSync, mkdirSync, rmSync, type Stats } from "node:fs";
import type { Server } from "node:http";
import net from "node:net";
import path from "node:path";
import { DaemonStartError } from "./daemon-start-error.ts";
import { listening } from "./listening.ts";

/** Bytes of sun_path less its final zero: 108 on Linux, 104 on macOS and the BSDs. */
const LONGEST_PATH = { linux: 107, other: 103 };
const OWNER_ONLY_FOLDER = 0o700;
const OWNER_ONLY_SOCKET = 0o600;
/** With this mask a new socket is the owner's alone from its first moment. */
const OWNER_ONLY_MASK = 0o177;

const PIPE_ADVICE = {
  EADDRINUSE:
    'another daemon listens there. Stop it with "daybreak stop", or choose another pipe with --socket',
  EACCES: "somebody else's daemon listens there. Choose another pipe with --socket",
};

/** True for the name of a Windows named pipe, which is no file. */
export function isNamedPipe(name: string): boolean {
  return name.startsWith("\\\\.\\pipe\\");
}

/**
 * Listens on a Unix socket that only its owner can open, or on a named pipe. A socket that a dead daemon left is
 * replaced. Throws a DaemonStartError when another daemon listens there or when something else is at the path.
 */
export async function listenIpc(server: Server, name: string): Promise<void> {
  if (isNamedPipe(name)) {
    await listening(server, () => server.listen(name), `the named pipe ${name}`, PIPE_ADVICE);
    return;
  }
  checkLength(name);
  makeFolder(path.dirname(name));
  await removeStale(name);
  // The socket is made within listen(), so the mask need not hold any longer.
  const mask = process.umask(OWNER_ONLY_MASK);
  try {
    await listening(
      server,
      () => {
        server.listen(name);
        process.umask(mask);
      },
      `the socket ${name}`,
    );
  } finally {
    process.umask(mask);
  }
  chmodSync(name, OWNER_ONLY_SOCKET);
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: OWNER_ONLY_FOLDER });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new DaemonStartError(
      `The folder of the socket cannot be made: ${reason}. Name another socket with --socket or SERVICE_SOCKET, or none with SERVICE_SOCKET="".`,
      { cause },
    );
  }
}

function checkLength(name: string): void {
  const longest = process.platform === "linux" ? LONGEST_PATH.linux : LONGEST_PATH.other;
  const length = Buffer.byteLength(name);
  if (length <= longest) return;
  throw new DaemonStartError(
    `The socket path ${name} is ${length} bytes long, but the system allows ${longest}. Choose a shorter one with --socket.`,
  );
}

async function removeStale(name: string): Promise<void> {
  const stats: Stats | undefined = lstatSync(name, { throwIfNoEntry: false });
  if (!stats) return;
  if (!stats.isSocket()) {
    const kind = stats.isSymbolicLink() ? "a symbolic link" : "something that is not a socket";
    throw new DaemonStartError(
      `At the socket path ${name} is ${kind}. Remove it, or choose another with --socket.`,
    );
  }
  if (await answers(name)) {
    throw new DaemonStartError(
      `Another daemon listens on ${name}. Stop it with "daybreak stop", or choose another socket with --socket.`,
    );
  }
  rmSync(name);
}

/** True when a process accepts connections on the socket. */
function answers(name: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(name);
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ECONNREFUSED" || error.code === "ENOENT") resolve(false);
      // A socket of another user, or one whose backlog is full: somebody has it.
      else if (error.code === "EACCES" || error.code === "EAGAIN") resolve(true);
      else reject(error);
    });
  });
}
