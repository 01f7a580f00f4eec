import { SingleBar } from "cli-progress";
import type { BatchObject } from "../batch/batch-client.ts";
import type { Output } from "../cli-io.ts";
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

  constructor(output: Output, now: () => number = () => performance.now()) {
    this.#output = output;
    this.#now = now;
  }

  show({ status, request_counts: { total, completed, failed } }: BatchObject): void {
    if (!this.#output.isTTY || total === 0) return;
    const done = completed + failed;
    this.#first ??= { at: this.#now(), done };
    const text = [
      `${done} of ${total}`,
      ...(failed > 0 ? [`${failed} failed`] : []),
      this.#left(total - done) ?? status,
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

  /** By the speed since it is watched. */
  #left(lines: number): string | undefined {
    const { at = 0, done = 0 } = this.#first ?? {};
    const newly = (this.#bar?.getTotal() ?? 0) - lines - done;
    if (lines === 0 || newly <= 0) return undefined;
    return `${formatDuration(((this.#now() - at) / newly) * lines)} left`;
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
