import type { Readable } from "node:stream";

/** Longest line kept, so that a hostile engine cannot fill the daemon's memory. */
const MAX_LINE_LENGTH = 1000;

/** The line that says what happened; a stack trace and Node's version follow it. */
const NAMES_ERROR = /\b\w*(error|abort|assert|fatal)\w*\b/i;

/**
 * Frames and headings of the stacks that Node prints with an error or when it aborts. They follow the line that says
 * why, contain names of errors, and would push that line out.
 */
const STACK_FRAME =
  /^(at .+:\d+:\d+\)?( \{)?$|\d+: (0x[\da-f]+ |.*:\d+:\d+\)?( \[.*\])?$)|-+ .*stack trace -+$)/i;

/** Keeps the last lines of a process's output, to explain why it ended. */
export class LastLines {
  readonly #max: number;
  readonly #lines: string[] = [];

  /** @param max how many lines are kept */
  constructor(max: number) {
    this.#max = max;
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
    // The exit of the process is reported elsewhere.
    stream.on("error", () => this.#add(rest));
  }

  /** The last line that names an error. */
  get lastError(): string | undefined {
    return this.#lines.findLast((line) => NAMES_ERROR.test(line));
  }

  get last(): string | undefined {
    return this.#lines.at(-1);
  }

  #add(line: string): void {
    const text = line.trim().slice(0, MAX_LINE_LENGTH);
    if (text === "" || STACK_FRAME.test(text)) return;
    this.#lines.push(text);
    if (this.#lines.length > this.#max) this.#lines.shift();
  }
}
