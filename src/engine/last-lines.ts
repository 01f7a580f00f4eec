import type { Readable } from "node:stream";

/** Longest line kept; a hostile engine must not fill the daemon's memory. */
const MAX_LINE_LENGTH = 1000;

/** A stack trace and Node's farewell follow the line that says what happened. */
const NAMES_ERROR = /\b\w*(error|abort|assert|fatal)\w*\b/i;

/**
 * Frames of the stacks that Node prints when it aborts, and their headings. They follow the line that says why, name
 * errors in plenty, and are so many that it would be forgotten.
 */
const STACK_FRAME = /^(\d+: (0x[\da-f]+ |.*:\d+:\d+\)?( \[.*\])?$)|-+ .*stack trace -+$)/i;

/** Keeps the last lines of a process's output, to explain its end. */
export class LastLines {
  readonly #most: number;
  readonly #lines: string[] = [];

  /** @param most how many lines are kept */
  constructor(most: number) {
    this.#most = most;
  }

  /** Reads a stream to its end, so that the process never waits for a reader. */
  watch(stream: Readable): void {
    let rest = "";
    stream.setEncoding("utf8");
    stream.on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = (lines.pop() ?? "").slice(0, MAX_LINE_LENGTH);
      for (const line of lines) this.#add(line);
    });
    stream.on("end", () => this.#add(rest));
    // The process tells its end itself; what it could not say any more is lost.
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
    if (this.#lines.length > this.#most) this.#lines.shift();
  }
}
