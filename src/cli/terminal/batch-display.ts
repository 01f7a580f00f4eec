import { SingleBar } from "cli-progress";
import type { BatchObject } from "../batch/batch-client.ts";
import type { Output } from "../cli-io.ts";
import { printable } from "./printable.ts";
import { formatDuration } from "./quantity.ts";

/** Space for everything in the line besides the bar. */
const TEXT_COLUMNS = 60;
const LONGEST_BAR = 40;
const SHORTEST_BAR = 8;

/** Progress of a batch: a bar on a terminal, otherwise nothing. */
export class BatchDisplay implements Disposable {
  readonly #output: Output;
  readonly #now: () => number;
  #bar: SingleBar | undefined;
  #first: { readonly at: number; readonly done: number } | undefined;
  /** When its count changed last. */
  #last: { readonly at: number; readonly done: number } | undefined;

  constructor(output: Output, now: () => number = () => performance.now()) {
    this.#output = output;
    this.#now = now;
  }

  show({ status, waiting, request_counts: { total, completed, failed, unanswered = 0 } }: BatchObject): void {
    if (!this.#output.isTTY || total === 0) return;
    const done = completed + failed - unanswered;
    this.#first ??= { at: this.#now(), done };
    if (this.#last?.done !== done) this.#last = { at: this.#now(), done };
    const text = [
      `${done} of ${total}`,
      ...(failed > unanswered ? [`${failed - unanswered} failed`] : []),
      waiting === undefined ? (this.#left(total - done, status) ?? status) : printable(waiting),
    ];
    const values = { text: text.join(", ") };
    if (this.#bar) this.#bar.update(done, values);
    else {
      this.#bar = newBar(this.#output);
      this.#bar.start(total, done, values);
    }
  }

  /** Leaves the bar as it is and goes to the next line. */
  [Symbol.dispose](): void {
    this.#bar?.stop();
    this.#bar = undefined;
  }

  /** By the speed since it is watched; undefined when it is not known, or when that time has passed without an answer. */
  #left(lines: number, status: BatchObject["status"]): string | undefined {
    const [first, last] = [this.#first, this.#last];
    if (!first || !last || last.done <= first.done || lines === 0 || status !== "in_progress")
      return undefined;
    const expected = ((last.at - first.at) / (last.done - first.done)) * lines;
    const left = expected - (this.#now() - last.at);
    return left > 0 ? `${formatDuration(left)} left` : undefined;
  }
}

function newBar(stream: Output): SingleBar {
  const columns = stream.columns ?? 80;
  return new SingleBar({
    stream,
    format: "[{bar}] {text}",
    barCompleteChar: "#",
    barIncompleteChar: ".",
    barsize: Math.max(SHORTEST_BAR, Math.min(LONGEST_BAR, columns - TEXT_COLUMNS)),
    hideCursor: true,
    gracefulExit: false,
  });
}
