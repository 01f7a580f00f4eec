import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import type { RunOptions } from "./run-options.ts";

/** Lines printed for one kind of finding; the rest are only counted. */
const MAX_LINES = 20;

/** The findings and progress of a run. */
export class Findings {
  readonly #name: string;
  readonly #options: RunOptions;
  /** When the work began: what is attacked takes its time to start. */
  #startedAt: number | undefined;
  readonly #found = new Map<string, number>();
  readonly #counts = new Map<string, number>();
  #done = 0;

  constructor(name: string, options: RunOptions) {
    this.#name = name;
    this.#options = options;
    console.log(`${name}: seed ${options.seed}, ${options.seconds} s`);
  }

  /** True until the time, which begins when this is first asked, is over or the count is reached. */
  get goesOn(): boolean {
    return this.#done < this.#options.count && this.#seconds() < this.#options.seconds;
  }

  /** How many inputs or operations have been begun; call it for each. */
  begin(): number {
    return this.#done++;
  }

  /** Counts an event for the summary, such as an outcome or a restart. */
  count(what: string, by = 1): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + by);
  }

  /**
   * Records a broken promise.
   * @param kind the promise, in few words
   * @param detail what shows it again: the input's number, what was answered
   */
  add(kind: string, detail: string): void {
    const times = (this.#found.get(kind) ?? 0) + 1;
    this.#found.set(kind, times);
    if (times <= MAX_LINES) console.log(`FOUND ${kind}: ${detail}`);
  }

  /** How often a promise was broken. */
  get broken(): number {
    return [...this.#found.values()].reduce((sum, times) => sum + times, 0);
  }

  /** Prints the summary and sets the exit code. A run that tried nothing has shown nothing. */
  finish(figures: Readonly<Record<string, string | number>> = {}): void {
    if (this.#done === 0) this.add("nothing was tried", "the time was over before the first attempt");
    const lines = [
      ...[...this.#counts].toSorted(([a], [b]) => a.localeCompare(b)),
      ...Object.entries(figures),
      ...[...this.#found].map(([kind, times]) => [`FOUND ${kind}`, times] as const),
    ];
    for (const [what, value] of lines) console.log(`  ${what}: ${value}`);
    const { broken } = this;
    const seconds = Math.round(this.#seconds());
    console.log(`${this.#name}: ${this.#done} in ${seconds} s, ${broken} broken promises`);
    process.exitCode = broken > 0 ? 1 : 0;
  }

  #seconds(): number {
    this.#startedAt ??= performance.now();
    return (performance.now() - this.#startedAt) / 1000;
  }
}

/** Runs the same work several times at once until the run is over. */
export async function atOnce(workers: number, findings: Findings, work: (input: number) => Promise<void>) {
  const worker = async (): Promise<void> => {
    while (findings.goesOn) {
      await work(findings.begin());
      await sleep(0);
    }
  };
  await Promise.all(Array.from({ length: workers }, worker));
}
