import { SingleBar } from "cli-progress";
import { pause } from "../../async/pause.ts";
import { CliError, EXIT } from "../cli-error.ts";
import { type CliIo, type Output, writeLine } from "../cli-io.ts";
import { formatDuration, printable } from "../terminal/format.ts";
import type { BatchClient, BatchObject } from "./batch-client.ts";

/** A short batch is over soon, a long one does not change much. */
const LOOK_MS = { first: 50, most: 1000, growth: 1.3 };
/** A daemon that is started again is there within seconds, but its models may take a while. */
const MAX_ABSENCE_MS = 120_000;
const ENDED = new Set(["completed", "failed", "expired", "cancelled"]);

/** Shows how far a batch is until it is over, also while the daemon is started again. */
export async function followBatch(io: CliIo, client: BatchClient, first: BatchObject): Promise<BatchObject> {
  using display = new BatchDisplay(io.stderr);
  let batch = first;
  let seenAt = performance.now();
  let lookMs = LOOK_MS.first;
  let told: string | undefined;
  while (!ENDED.has(batch.status)) {
    display.show(batch);
    told = await tellWaiting(io, batch, told);
    await pause(lookMs, io.signal);
    lookMs = Math.min(lookMs * LOOK_MS.growth, LOOK_MS.most);
    try {
      batch = await client.get(batch.id);
      seenAt = performance.now();
    } catch (error) {
      if (!mayPass(error) || performance.now() - seenAt > MAX_ABSENCE_MS) throw error;
    }
  }
  display.show(batch);
  return batch;
}

/** The bar tells it on a terminal. @returns why it waits, which has been told */
async function tellWaiting(
  { stderr }: CliIo,
  { id, waiting }: BatchObject,
  told: string | undefined,
): Promise<string | undefined> {
  if (stderr.isTTY || waiting === told) return told;
  await writeLine(stderr, waiting === undefined ? `${id} goes on.` : `${id} ${printable(waiting)}.`);
  return waiting;
}

function mayPass(error: unknown): boolean {
  if (!(error instanceof CliError)) return false;
  return (
    error.exitCode === EXIT.noDaemon || error.exitCode === EXIT.tryLater || error.code === "connection_lost"
  );
}

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
