import type { ChildProcess } from "node:child_process";
import type { Readable } from "node:stream";

/** Length at which lines are cut, so that a hostile engine cannot fill the daemon's memory. */
const MAX_LINE_LENGTH = 1000;

/** A line that says what happened; a stack trace and Node's version follow it. */
const ERROR_LINE = /\b\w*(error|abort|assert|fatal)\w*\b/i;

/**
 * Frames and headings of the stacks that Node prints with an error or when it aborts. They are skipped, because they
 * contain names of errors and would displace the line that says why.
 */
const STACK_FRAME =
  /^(at .+:\d+:\d+\)?( \{)?$|\d+: (0x[\da-f]+ |.*:\d+:\d+\)?( \[.*\])?$)|-+ .*stack trace -+$)/i;

/** Last lines of output that may explain an exit. */
const MAX_LINES = 20;

/** Keeps the last lines of a process's output, to explain why it ended. */
export class LastLines {
  readonly #lines: string[] = [];

  /** Reads both output streams of a process; one that could not be started has none. */
  static of({ stdout, stderr }: ChildProcess): LastLines {
    const lines = new LastLines();
    for (const stream of [stdout, stderr]) if (stream) lines.watch(stream);
    return lines;
  }

  /** Reads a stream to its end, so that the process never blocks on it. */
  watch(stream: Readable): void {
    let rest = "";
    stream.setEncoding("utf8");
    stream.on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = (lines.pop() ?? "").slice(0, MAX_LINE_LENGTH);
      for (const line of lines) this.#add(line);
    });
    stream.on("end", () => this.#add(rest));
    // The owner of the process reports its exit.
    stream.on("error", () => this.#add(rest));
  }

  get lastError(): string | undefined {
    return this.#lines.findLast((line) => ERROR_LINE.test(line));
  }

  get last(): string | undefined {
    return this.#lines.at(-1);
  }

  #add(line: string): void {
    const text = line.trim().slice(0, MAX_LINE_LENGTH);
    if (text === "" || STACK_FRAME.test(text)) return;
    this.#lines.push(text);
    if (this.#lines.length > MAX_LINES) this.#lines.shift();
  }
}

/** Describes how a process has ended. */
export function describeExit(code: number | null, signal: NodeJS.Signals | null): string {
  return signal === null ? `exited with code ${code}` : `was killed by ${signal}`;
}

/**
 * Kills a process and its group. When bubblewrap is killed during setup, a child of it may keep waiting and hold the
 * engine's pipes open.
 */
export function killGroup(child: ChildProcess): void {
  try {
    // Throws on Windows, which does not have process groups.
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  } catch {
    child.kill("SIGKILL"); // the group does not exist
  }
}

/** True when a process with this id exists, even if another user owns it. */
export function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // The process exists but belongs to another user.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/**
 * Exit code of an engine that runs without the restrictions it was started with. Larger than Node's own codes, smaller
 * than those that mean a signal.
 */
export const UNRESTRICTED_EXIT_CODE = 78;

/** The error message for the client. */
export const UNRESTRICTED_REASON =
  "The model cannot be loaded: the runtime of its engine lacks Node's permission model, or it is turned off, so a model file would get all rights of this user. Start Daybreak with Node 24.20 or later.";

/**
 * True when Node's permission model restricts this process. Other runtimes silently ignore the flag that turns it on.
 */
export function isRestricted(permission: Permission | undefined = process.permission): boolean {
  return permission !== undefined && !FORBIDDEN.some((right) => permission.has(right));
}

type Permission = Pick<typeof process.permission, "has">;

const FORBIDDEN = ["fs.read", "fs.write", "child"] as const;
