import { SingleBar } from "cli-progress";
import type { QuantizeLine } from "../../dialects/management/quantize-schemas.ts";
import type { Output } from "../cli-io.ts";
import { formatBytes, formatDuration } from "./quantity.ts";

const BAR_COLUMNS = 30;

type Quantizing = Extract<QuantizeLine, { status: "quantizing" }>;

/** Progress of a quantization: a bar on a terminal, otherwise nothing. */
export class QuantizeDisplay implements Disposable {
  readonly #output: Output;
  readonly #now: () => number;
  readonly #startedAt: number;
  #bar: SingleBar | undefined;

  constructor(output: Output, now: () => number = () => performance.now()) {
    this.#output = output;
    this.#now = now;
    this.#startedAt = now();
  }

  show(line: Quantizing): void {
    if (!this.#output.isTTY) return;
    const values = { text: describeQuantizing(line, this.#now() - this.#startedAt) };
    if (this.#bar) return this.#bar.update(line.completed_bytes, values);
    this.#bar = new SingleBar({
      stream: this.#output,
      format: "[{bar}] {text}",
      barCompleteChar: "#",
      barIncompleteChar: ".",
      barsize: BAR_COLUMNS,
      hideCursor: true,
      gracefulExit: false,
      // By default it draws nothing on a dumb terminal and wraps long lines elsewhere.
      linewrap: false,
    });
    this.#bar.start(line.total_bytes, line.completed_bytes, values);
  }

  /** Leaves the bar as it is and goes to the next line. */
  end(): void {
    this.#bar?.stop();
    this.#bar = undefined;
  }

  [Symbol.dispose](): void {
    this.end();
  }
}

/** "42% of 4.7 GB, 1m 40s left" */
export function describeQuantizing({ progress, total_bytes: total }: Quantizing, elapsedMs: number): string {
  const done = `${Math.floor(progress * 100)}% of ${formatBytes(total)}`;
  if (progress <= 0 || progress >= 1) return done;
  return `${done}, ${formatDuration((elapsedMs / progress) * (1 - progress))} left`;
}
