import { SingleBar } from "cli-progress";
import type { PullLine, QuantizeLine } from "../../api/management/model-schemas.ts";
import type { Output } from "../cli-io.ts";
import { formatBytes, formatDuration } from "../../json/quantities.ts";
import { printable } from "./format.ts";

/** Period of the displayed transfer rate. */
const RATE_WINDOW_MS = 10_000;
/** Columns for everything besides the bar. */
const TEXT_COLUMNS = 64;
const MAX_BAR_COLUMNS = 40;
const MIN_BAR_COLUMNS = 8;

type Downloading = Extract<PullLine, { status: "downloading" }>;

/** Progress of a download: a bar on a terminal, otherwise only problems. */
export class DownloadDisplay implements Disposable {
  readonly #output: Output;
  readonly #name: string;
  readonly #now: () => number;
  #bar: SingleBar | undefined;
  readonly #samples: { at: number; bytes: number }[] = [];

  constructor(output: Output, name: string, now: () => number = () => performance.now()) {
    this.#output = output;
    this.#name = name;
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
    const values = { text: describeProgress(line, transferRate(this.#samples)) };
    if (this.#bar) {
      this.#bar.setTotal(line.total_bytes);
      this.#bar.update(line.downloaded_bytes, values);
    } else {
      this.#bar = this.#newBar();
      this.#bar.start(line.total_bytes, line.downloaded_bytes, values);
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

  #newBar(): SingleBar {
    const columns = this.#output.columns ?? 80;
    const barsize = Math.max(MIN_BAR_COLUMNS, Math.min(MAX_BAR_COLUMNS, columns - TEXT_COLUMNS));
    return new SingleBar({
      stream: this.#output,
      format: `${this.#name.slice(0, 20)} [{bar}] {text}`,
      barCompleteChar: "#",
      barIncompleteChar: ".",
      barsize,
      hideCursor: true,
      gracefulExit: false,
      // The default draws nothing on a dumb terminal and wraps long lines on others.
      linewrap: false,
    });
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
      // The default draws nothing on a dumb terminal and wraps long lines on others.
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
