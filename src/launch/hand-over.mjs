// @ts-check
import { spawn as nodeSpawn } from "node:child_process";
import { closeSync, existsSync, openSync, readSync } from "node:fs";

/** Signals with which a supervisor, a shell or (SIGBREAK) a Windows console ends a process. */
const FORWARDED_SIGNALS = /** @type {const} */ (["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGBREAK"]);

/** Signals that a terminal sends to the process group, so that a forwarded one would arrive twice. */
const TERMINAL_SIGNALS = new Set(["SIGINT", "SIGHUP", "SIGQUIT"]);

/** Exit code with which shells report a command that cannot be executed. */
const EXIT_CANNOT_EXECUTE = 126;

/** Reasons why a program cannot be started, by the system's error code. @type {Readonly<Record<string, string>>} */
const REASONS = {
  ENOENT: "it does not exist",
  ENOTDIR: "it does not exist",
  EACCES: "this user may not execute it",
  EPERM: "this user may not execute it",
  ENOEXEC: "it is not a program for this system",
  ETXTBSY: "it is being written",
};

/** Bytes of a script in which to find its interpreter's name; Linux reads the same number. */
const HEAD_BYTES = 256;

/**
 * @typedef {object} HandOverOptions
 * @property {(file: string, args: readonly string[], options: import("node:child_process").SpawnOptions) => import("node:child_process").ChildProcess} [spawn]
 * @property {NodeJS.Process} [self]
 */

/**
 * Continues under another Node: in the same process if Node can replace it (process.execve, Node 22.15 and later, not on
 * Windows), or else in a child that also ends when this process ends.
 *
 * @param {string} binary a Node that is known to start, because Node aborts where execve fails
 * @param {readonly string[]} args
 * @param {HandOverOptions} [options]
 * @returns {Promise<void>} settles when the child has ended; never when the process was replaced
 */
export async function handOver(binary, args, { spawn = nodeSpawn, self = process } = {}) {
  if (typeof self.execve === "function" && self.platform !== "win32") {
    self.execve(binary, [binary, ...args], self.env);
  }
  // The channel carries no messages. When it closes, the child knows that this process has ended, even if it was killed.
  await runChild(binary, args, { spawn, self, stdio: ["inherit", "inherit", "inherit", "ipc"] });
}

/**
 * Runs a program as a child with this process's standard streams, forwards signals to it and takes over its exit code.
 * Reports a program that cannot be started; the exit code is then 126.
 *
 * @param {string} program
 * @param {readonly string[]} args
 * @param {HandOverOptions & { stdio?: import("node:child_process").StdioOptions }} [options]
 * @returns {Promise<void>} settles when the child has ended
 */
export async function runChild(program, args, { spawn = nodeSpawn, self = process, stdio = "inherit" } = {}) {
  /** @type {import("node:child_process").ChildProcess | undefined} */
  let child;
  // Before the child starts, because it may run long before spawn() returns.
  const stopForwarding = forwardSignals((signal) => child?.kill(signal), self);
  try {
    child = spawn(program, args, { stdio });
    const { code, signal } = await ended(child);
    stopForwarding();
    // Ends by the same signal, so that a shell or supervisor sees it.
    if (signal) self.kill(self.pid, signal);
    else self.exitCode = code ?? 1;
  } catch (error) {
    stopForwarding();
    self.stderr.write(`daybreak: cannot start ${program}: ${spawnFailureReason(program, error)}.\n`);
    self.exitCode = EXIT_CANNOT_EXECUTE;
  }
}

/**
 * @param {string} program
 * @param {unknown} error
 */
function spawnFailureReason(program, error) {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (code === "ENOENT" && existsSync(program)) {
    const interpreter = interpreterOf(program);
    // Quotes make a carriage return of Windows visible.
    const what =
      interpreter === undefined ? "a part of it" : `its interpreter ${JSON.stringify(interpreter)}`;
    return `${what} does not exist on this system. Install it again`;
  }
  return REASONS[code] ?? String(error);
}

/**
 * Reads the program that a script's first line names.
 * @param {string} script
 * @returns {string | undefined} undefined for other files
 */
function interpreterOf(script) {
  const head = Buffer.alloc(HEAD_BYTES);
  const file = openSync(script, "r");
  try {
    readSync(file, head, 0, HEAD_BYTES, 0);
  } finally {
    closeSync(file);
  }
  return /^#![ \t]*([^ \t\n\0]+)/.exec(head.toString())?.[1];
}

/**
 * @param {import("node:child_process").ChildProcess} child
 * @returns {Promise<{ code: number | null, signal: NodeJS.Signals | null }>}
 */
function ended(child) {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) => resolve({ code, signal }));
  });
}

/**
 * @param {(signal: NodeJS.Signals) => void} forward
 * @param {NodeJS.Process} self
 * @returns {() => void} function that restores the default effect of the signals
 */
function forwardSignals(forward, self) {
  const terminal = hasTerminal(self.platform);
  /** @type {[NodeJS.Signals, () => void][]} */
  const handlers = FORWARDED_SIGNALS.map((signal) => [
    signal,
    () => {
      // A handler is needed even if it forwards nothing, because this process must outlive the child.
      if (!(terminal && TERMINAL_SIGNALS.has(signal))) forward(signal);
    },
  ]);
  for (const [signal, handler] of handlers) self.on(signal, handler);
  return () => {
    for (const [signal, handler] of handlers) self.off(signal, handler);
  };
}

/**
 * True when a terminal controls this process, even if its standard streams are redirected.
 * @param {string} platform
 */
function hasTerminal(platform) {
  // On Windows Ctrl-C reaches every process of the console, and other signals cannot be caught.
  if (platform === "win32") return true;
  try {
    closeSync(openSync("/dev/tty", "r"));
    return true;
  } catch {
    return false;
  }
}
