import { SingleBar } from "cli-progress";
import type { PullLine, QuantizeLine } from "../../api/wire/models.ts";
import type { Output } from "../cli-io.ts";
import { formatBytes, formatDuration } from "../../json/quantities.ts";
import { printable } from "./format.ts";

/** Columns for everything besides the bar. */
const TEXT_COLUMNS = 64;
const MAX_BAR_COLUMNS = 40;
const MIN_BAR_COLUMNS = 8;

/** Bar on a terminal, drawn from the first update on. */
export class ProgressBar implements Disposable {
  readonly #stream: Output;
  readonly #prefix: string;
  #bar: SingleBar | undefined;

  constructor(stream: Output, prefix = "") {
    this.#stream = stream;
    this.#prefix = prefix;
  }

  update(value: number, total: number, text: string): void {
    if (this.#bar) {
      this.#bar.setTotal(total);
      this.#bar.update(value, { text });
    } else {
      this.#bar = this.#create();
      this.#bar.start(total, value, { text });
    }
  }

  /** Leaves the bar as it is and goes to the next line. */
  end(): void {
    this.#bar?.stop();
    this.#bar = undefined;
  }

  [Symbol.dispose](): void {
    this.end();
  }

  #create(): SingleBar {
    const columns = this.#stream.columns ?? 80;
    return new SingleBar({
      stream: this.#stream,
      format: `${this.#prefix}[{bar}] {text}`,
      barCompleteChar: "#",
      barIncompleteChar: ".",
      barsize: Math.max(MIN_BAR_COLUMNS, Math.min(MAX_BAR_COLUMNS, columns - TEXT_COLUMNS)),
      hideCursor: true,
      gracefulExit: false,
      // The default draws nothing on a dumb terminal and wraps long lines on others.
      linewrap: false,
    });
  }
}

/** Period of the displayed transfer rate. */
const RATE_WINDOW_MS = 10_000;

type Downloading = Extract<PullLine, { status: "downloading" }>;

/** Progress of a download: a bar on a terminal, otherwise only problems. */
export class DownloadDisplay extends ProgressBar {
  readonly #output: Output;
  readonly #now: () => number;
  readonly #samples: { at: number; bytes: number }[] = [];

  constructor(output: Output, name: string, now: () => number = () => performance.now()) {
    super(output, `${name.slice(0, 20)} `);
    this.#output = output;
    this.#now = now;
  }

  show(line: Exclude<PullLine, { status: "success" }>): void {
    if (line.status === "downloading" && line.note !== undefined) {
      this.end();
      this.#output.write(`${printable(line.note)} ...\n`);
      return;
    }
    if (!this.#output.isTTY) return;
    if (line.status === "verifying") {
      this.end();
      this.#output.write("Verifying ...\n");
      return;
    }
    const sample = { at: this.#now(), bytes: line.downloaded_bytes };
    this.#samples.push(sample);
    while ((this.#samples[0]?.at ?? 0) < sample.at - RATE_WINDOW_MS) this.#samples.shift();
    const text = describeProgress(line, transferRate(this.#samples));
    this.update(line.downloaded_bytes, line.total_bytes, text);
  }
}

/** Bytes per second over the samples; undefined with fewer than two times. */
export function transferRate(samples: readonly { at: number; bytes: number }[]): number | undefined {
  const [first, last] = [samples[0], samples.at(-1)];
  if (!first || !last || last.at <= first.at) return undefined;
  return ((last.bytes - first.bytes) / (last.at - first.at)) * 1000;
}

/** "42% 1.2 GB of 4.7 GB, 35.1 MB/s, 1m 40s left" */
export function describeProgress(line: Downloading, bytesPerSecond: number | undefined): string {
  const parts = [
    `${Math.floor(line.progress * 100)}% ${formatBytes(line.downloaded_bytes)} of ${formatBytes(line.total_bytes)}`,
  ];
  if (bytesPerSecond !== undefined && bytesPerSecond > 0) {
    const left = ((line.total_bytes - line.downloaded_bytes) / bytesPerSecond) * 1000;
    parts.push(`${formatBytes(bytesPerSecond)}/s`, `${formatDuration(left)} left`);
  }
  return parts.join(", ");
}

type Quantizing = Extract<QuantizeLine, { status: "quantizing" }>;

/** "42% of 4.7 GB, 1m 40s left" */
export function describeQuantizing({ progress, total_bytes: total }: Quantizing, elapsedMs: number): string {
  const done = `${Math.floor(progress * 100)}% of ${formatBytes(total)}`;
  if (progress <= 0 || progress >= 1) return done;
  return `${done}, ${formatDuration((elapsedMs / progress) * (1 - progress))} left`;
}
