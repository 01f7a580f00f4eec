import { createInterface, type Interface, type Key } from "node:readline";
import { Writable } from "node:stream";
import type { CliIo } from "../cli-io.ts";
import { MessageAssembler, type Prompter, type PromptEvent } from "./prompter.ts";

const PROMPT = "> ";
const CONTINUATION = "... ";
/** Messages in the history of the arrow keys. */
const HISTORY_SIZE = 200;
/** Bracketed paste: the terminal marks what is pasted, so that its line ends do not send it. */
const PASTE_ON = "\u001b[?2004h";
const PASTE_OFF = "\u001b[?2004l";

/**
 * Prompt at a terminal, with line editing and history. The terminal stays in raw mode during an answer, so that Ctrl-C
 * reaches the program; text typed meanwhile appears at the next prompt.
 */
export class TerminalPrompter implements Prompter {
  readonly #io: CliIo;
  readonly #readline: Interface;
  readonly #message = new MessageAssembler();
  readonly #events: PromptEvent[] = [];
  #pasted: string[] = [];
  #pasting = false;
  #closed = false;
  #waiting: ((event: PromptEvent) => void) | undefined;
  #onInterrupt: (() => void) | undefined;

  constructor(io: CliIo) {
    this.#io = io;
    const echo = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        if (this.#waiting) io.stdout.write(chunk);
        // Synchronously: a buffered chunk would be shown or dropped by the state of a later moment.
        done();
      },
    });
    // readline reads the width of the terminal from its output.
    Object.defineProperty(echo, "columns", { get: () => io.stdout.columns });
    this.#readline = createInterface({
      input: io.stdin,
      output: echo,
      terminal: true,
      historySize: HISTORY_SIZE,
      removeHistoryDuplicates: true,
      prompt: PROMPT,
    });
    this.#readline.on("line", (line) => this.#handleLine(line));
    this.#readline.on("SIGINT", () => this.#interrupt());
    this.#readline.on("close", () => {
      this.#closed = true;
      this.#emit({ type: "end" });
    });
    io.stdin.on("keypress", this.#onKey);
    io.stdout.write(PASTE_ON);
  }

  next(): Promise<PromptEvent> {
    const event = this.#events.shift();
    if (event) return Promise.resolve(event);
    if (this.#closed) return Promise.resolve({ type: "end" });
    return new Promise((resolve) => {
      this.#waiting = resolve;
      this.#prompt();
    });
  }

  catchInterrupts(handler: () => void): Disposable {
    this.#onInterrupt = handler;
    return {
      [Symbol.dispose]: () => {
        this.#onInterrupt = undefined;
      },
    };
  }

  [Symbol.dispose](): void {
    this.#io.stdin.off("keypress", this.#onKey);
    this.#readline.close();
    this.#io.stdout.write(PASTE_OFF);
  }

  readonly #onKey = (_text: string | undefined, key: Key): void => {
    if (key.name === "paste-start") this.#pasting = true;
    if (key.name === "paste-end") this.#pasting = false;
  };

  #handleLine(line: string): void {
    if (this.#pasting) {
      this.#pasted.push(line);
      return;
    }
    const pasted = this.#pasted.splice(0);
    const text = pasted.length > 0 ? [...pasted, line].join("\n") : this.#message.push(line);
    if (text === undefined) this.#prompt();
    else this.#emit({ type: "message", text });
  }

  #interrupt(): void {
    this.#message.reset();
    this.#pasted = [];
    if (this.#onInterrupt) this.#onInterrupt();
    else {
      // Drop the line, as a shell does.
      this.#readline.write(null, { ctrl: true, name: "e" });
      this.#readline.write(null, { ctrl: true, name: "u" });
      this.#emit({ type: "interrupt" });
    }
  }

  #emit(event: PromptEvent): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting) waiting(event);
    else this.#events.push(event);
  }

  #prompt(): void {
    this.#readline.setPrompt(this.#message.unfinished ? CONTINUATION : PROMPT);
    this.#readline.prompt(true);
  }
}
