import { pause } from "../../async/promises.ts";
import { CliError, EXIT } from "../cli-error.ts";
import { type CliIo, type Output, writeLine } from "../cli-io.ts";
import { formatDuration } from "../../json/quantities.ts";
import { printable } from "../terminal/format.ts";
import { ProgressBar } from "../terminal/progress-display.ts";
import type { BatchClient, BatchObject } from "./batch-client.ts";

/** Interval between requests for the status; it grows, so that short batches end promptly. */
const POLL_INTERVAL_MS = { first: 50, max: 1000, growth: 1.3 };
/** Longest wait for a daemon that restarts and loads its models. */
const MAX_UNREACHABLE_MS = 120_000;
const FINAL_STATUSES = new Set(["completed", "failed", "expired", "cancelled"]);

/** Shows the progress of a batch until it ends, also across a restart of the daemon. */
export async function followBatch(io: CliIo, client: BatchClient, first: BatchObject): Promise<BatchObject> {
  using display = new BatchDisplay(io.stderr);
  let batch = first;
  let lastAnswerAt = performance.now();
  let intervalMs = POLL_INTERVAL_MS.first;
  let reported: string | undefined;
  while (!FINAL_STATUSES.has(batch.status)) {
    display.show(batch);
    reported = await reportWaiting(io, batch, reported);
    await pause(intervalMs, io.signal);
    intervalMs = Math.min(intervalMs * POLL_INTERVAL_MS.growth, POLL_INTERVAL_MS.max);
    try {
      batch = await client.get(batch.id);
      lastAnswerAt = performance.now();
    } catch (error) {
      if (!isTemporary(error) || performance.now() - lastAnswerAt > MAX_UNREACHABLE_MS) throw error;
    }
  }
  display.show(batch);
  return batch;
}

/** Reports why a batch waits, except on a terminal, where the bar shows it. @returns the reported reason */
async function reportWaiting(
  { stderr }: CliIo,
  { id, waiting }: BatchObject,
  reported: string | undefined,
): Promise<string | undefined> {
  if (stderr.isTTY || waiting === reported) return reported;
  await writeLine(stderr, waiting === undefined ? `${id} goes on.` : `${id} ${printable(waiting)}.`);
  return waiting;
}

function isTemporary(error: unknown): boolean {
  if (!(error instanceof CliError)) return false;
  return (
    error.exitCode === EXIT.noDaemon || error.exitCode === EXIT.tryLater || error.code === "connection_lost"
  );
}

/** Progress of a batch: a bar on a terminal, otherwise nothing. */
export class BatchDisplay extends ProgressBar {
  readonly #output: Output;
  readonly #now: () => number;
  #first: { readonly at: number; readonly done: number } | undefined;
  /** Last change of the count. */
  #last: { readonly at: number; readonly done: number } | undefined;

  constructor(output: Output, now: () => number = () => performance.now()) {
    super(output);
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
      waiting === undefined ? (this.#timeLeft(total - done, status) ?? status) : printable(waiting),
    ];
    this.update(done, total, text.join(", "));
  }

  /** Estimate by the speed so far; undefined if unknown, or if that time has passed without an answer. */
  #timeLeft(lines: number, status: BatchObject["status"]): string | undefined {
    const [first, last] = [this.#first, this.#last];
    if (!first || !last || last.done <= first.done || lines === 0 || status !== "in_progress")
      return undefined;
    const expected = ((last.at - first.at) / (last.done - first.done)) * lines;
    const left = expected - (this.#now() - last.at);
    return left > 0 ? `${formatDuration(left)} left` : undefined;
  }
}
