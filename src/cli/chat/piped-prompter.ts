import type { CliIo } from "../cli-io.ts";
import { readLines } from "../client/read-lines.ts";
import { MessageLines } from "./message-lines.ts";
import type { Prompter, PromptEvent } from "./prompter.ts";

/** Takes the messages from a file or a pipe. Ctrl-C ends the whole command then, as it does elsewhere. */
export class PipedPrompter implements Prompter {
  readonly #io: CliIo;
  readonly #lines: AsyncGenerator<string, void, undefined>;
  readonly #message = new MessageLines();

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
