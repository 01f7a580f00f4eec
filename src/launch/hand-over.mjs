// @ts-check
import { spawn as nodeSpawn } from "node:child_process";
import { closeSync, existsSync, openSync, readSync } from "node:fs";

/** Signals with which a supervisor, a shell or (SIGBREAK) a Windows console ends a process. */
const FORWARDED_SIGNALS = /** @type {const} */ (["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGBREAK"]);

/** A terminal sends these to the whole process group, so a forwarded one would arrive twice. */
const TERMINAL_SIGNALS = new Set(["SIGINT", "SIGHUP", "SIGQUIT"]);

/** Exit code with which shells report a command that cannot be executed. */
const EXIT_CANNOT_EXECUTE = 126;

/** Why a program cannot be started, by the system's error code. @type {Readonly<Record<string, string>>} */
const REASONS = {
  ENOENT: "it does not exist",
  ENOTDIR: "it does not exist",
  EACCES: "this user may not execute it",
  EPERM: "this user may not execute it",
  ENOEXEC: "it is not a program for this system",
  ETXTBSY: "it is being written",
};

/** Enough of a script to read its interpreter's name; Linux reads as much. */
const HEAD_BYTES = 256;

/**
 * @typedef {object} HandOverOptions
 * @property {(file: string, args: readonly string[], options: import("node:child_process").SpawnOptions) => import("node:child_process").ChildProcess} [spawn]
 * @property {NodeJS.Process} [self]
 */

/**
 * Continues under another Node in place of this one: the same process where Node can replace it (process.execve, Node
 * 22.15 and later, not on Windows), else a child that also ends when this process is gone.
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
  // The channel carries no messages. When it closes, the child knows that this process is gone, even if it was killed.
  await runChild(binary, args, { spawn, self, stdio: ["inherit", "inherit", "inherit", "ipc"] });
}

/**
 * Runs any program as a child that has this process's standard streams, gets its signals and gives it its exit code.
 * What cannot be started is reported, and the exit code is then 126.
 *
 * @param {string} program
 * @param {readonly string[]} args
 * @param {HandOverOptions & { stdio?: import("node:child_process").StdioOptions }} [options]
 * @returns {Promise<void>} settles when the child has ended
 */
export async function runChild(program, args, { spawn = nodeSpawn, self = process, stdio = "inherit" } = {}) {
  /** @type {import("node:child_process").ChildProcess | undefined} */
  let child;
  // Before the child begins, which may be far before this process goes on.
  const stopForwarding = forwardSignals((signal) => child?.kill(signal), self);
  try {
    child = spawn(program, args, { stdio });
    const { code, signal } = await ended(child);
    stopForwarding();
    // A shell or supervisor sees what happened if this process ends by the same signal.
    if (signal) self.kill(self.pid, signal);
    else self.exitCode = code ?? 1;
  } catch (error) {
    stopForwarding();
    self.stderr.write(`daybreak: cannot start ${program}: ${whyNot(program, error)}.\n`);
    self.exitCode = EXIT_CANNOT_EXECUTE;
  }
}

/**
 * @param {string} program
 * @param {unknown} error
 */
function whyNot(program, error) {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (code === "ENOENT" && existsSync(program)) {
    const interpreter = interpreterOf(program);
    // In quotes, a carriage return of Windows can be seen.
    const what =
      interpreter === undefined ? "a part of it" : `its interpreter ${JSON.stringify(interpreter)}`;
    return `${what} does not exist on this system. Install it again`;
  }
  return REASONS[code] ?? String(error);
}

/**
 * The program that a script's first line names.
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
 * @returns {() => void} gives the signals their usual effect again
 */
function forwardSignals(forward, self) {
  const terminal = hasTerminal(self.platform);
  /** @type {[NodeJS.Signals, () => void][]} */
  const handlers = FORWARDED_SIGNALS.map((signal) => [
    signal,
    () => {
      // A handler is needed even if it forwards nothing, because this process has to outlive the child.
      if (!(terminal && TERMINAL_SIGNALS.has(signal))) forward(signal);
    },
  ]);
  for (const [signal, handler] of handlers) self.on(signal, handler);
  return () => {
    for (const [signal, handler] of handlers) self.off(signal, handler);
  };
}

/**
 * True when a terminal controls this process, whatever its standard streams are connected to.
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
