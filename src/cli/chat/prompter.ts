import type { CliIo } from "../cli-io.ts";
import { readLines } from "../client/daemon-client.ts";

/** User action at the prompt. */
export type PromptEvent =
  | { readonly type: "message"; readonly text: string }
  /** Ctrl-C. */
  | { readonly type: "interrupt" }
  /** Ctrl-D, or the end of a piped input. */
  | { readonly type: "end" };

/** Source of the user's messages. */
export interface Prompter extends Disposable {
  /** Waits for the next message or key. */
  next(): Promise<PromptEvent>;
  /** Calls `handler` on Ctrl-C during an answer, until the result is disposed. */
  catchInterrupts(handler: () => void): Disposable;
}

/** Reads the messages from a file or a pipe. Ctrl-C ends the command. */
export class PipedPrompter implements Prompter {
  readonly #io: CliIo;
  readonly #lines: AsyncGenerator<string, void, undefined>;
  readonly #message = new MessageAssembler();

  constructor(io: CliIo) {
    this.#io = io;
    this.#lines = readLines(io.stdin);
  }

  async next(): Promise<PromptEvent> {
    for (;;) {
      const { value, done } = await this.#lines.next();
      if (done) return { type: "end" };
      const text = this.#message.push(value);
      if (text !== undefined) return { type: "message", text };
    }
  }

  catchInterrupts(): Disposable {
    return { [Symbol.dispose]() {} };
  }

  [Symbol.dispose](): void {
    // An input that is still open would keep the process alive.
    this.#io.stdin.destroy();
  }
}

const QUOTES = '"""';

/**
 * Joins lines into messages. A line is a message, unless it ends in a backslash, which continues it, or stands between
 * lines with three double quotes.
 */
export class MessageAssembler {
  #lines: string[] = [];
  #quoted = false;

  /** True in the middle of a message. */
  get unfinished(): boolean {
    return this.#quoted || this.#lines.length > 0;
  }

  /** Adds a line; returns the message that it completes, if any. */
  push(line: string): string | undefined {
    if (this.#quoted) {
      const end = line.indexOf(QUOTES);
      this.#lines.push(end < 0 ? line : line.slice(0, end));
      return end < 0 ? undefined : this.#take();
    }
    if (this.#lines.length === 0 && line.trimStart().startsWith(QUOTES)) {
      this.#quoted = true;
      const rest = line.trimStart().slice(QUOTES.length);
      const end = rest.indexOf(QUOTES);
      if (end >= 0) this.#lines.push(rest.slice(0, end));
      else if (rest !== "") this.#lines.push(rest);
      return end < 0 ? undefined : this.#take();
    }
    if (line.endsWith("\\")) {
      this.#lines.push(line.slice(0, -1));
      return undefined;
    }
    this.#lines.push(line);
    return this.#take();
  }

  /** Forgets an unfinished message. */
  reset(): void {
    this.#lines = [];
    this.#quoted = false;
  }

  #take(): string {
    const message = this.#lines.join("\n");
    this.reset();
    return message;
  }
}
