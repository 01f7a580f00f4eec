import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { type DaemonOptions, startDaemon, type TestDaemon } from "../../../../test/support/start-daemon.ts";
import { CanaryStream } from "./canary-stream.ts";
import type { Findings } from "./findings.ts";
import type { HealthRecord } from "./health-watch-thread.ts";

/** Longest time that /health may take to answer. */
const LONGEST_HEALTH_MS = 1000;

/** A real daemon under attack, whose life, /health and streams of an untouched model are watched. */
export class WatchedDaemon {
  readonly daemon: TestDaemon;
  readonly #findings: Findings;
  readonly #health: Worker;
  readonly #canary: CanaryStream;
  #isExpectedToEnd = false;

  private constructor(daemon: TestDaemon, findings: Findings) {
    this.daemon = daemon;
    this.#findings = findings;
    this.#health = new Worker(new URL("health-watch-thread.ts", import.meta.url), {
      workerData: { url: daemon.url, pid: daemon.pid },
    });
    this.#canary = new CanaryStream(daemon.url, findings);
    void this.#watchEnd();
  }

  /** Starts a daemon with daybreak-mini, which the canary uses: attack other models. */
  static async start(findings: Findings, options: DaemonOptions = {}): Promise<WatchedDaemon> {
    return new WatchedDaemon(await startDaemon(options), findings);
  }

  get url(): string {
    return this.daemon.url;
  }

  /** Ends the watch and the daemon, and returns what was observed. */
  async stop(): Promise<Record<string, string | number>> {
    const canary = await this.#canary.stop();
    const health = await this.#stopHealth();
    this.#isExpectedToEnd = true;
    await this.daemon.stop();
    for (const failure of health.failed) this.#findings.add("/health did not answer", failure);
    const [slowest = 0] = health.slowestMs;
    for (const millis of health.slowestMs.filter((time) => time > LONGEST_HEALTH_MS))
      this.#findings.add("/health stalled", `${Math.round(millis)} ms`);
    return {
      "health asked": health.asked,
      "slowest health (ms)": Math.round(slowest),
      "streams of another model": canary,
    };
  }

  async #watchEnd(): Promise<void> {
    const { code, signal } = await this.daemon.exited;
    if (this.#isExpectedToEnd) return;
    this.#findings.add(
      "the daemon ended",
      `code ${code}, signal ${signal}\n${this.daemon.logs().slice(-4000)}`,
    );
  }

  async #stopHealth(): Promise<HealthRecord> {
    const answer = once(this.#health, "message");
    this.#health.postMessage("stop", []);
    // The thread sends nothing else.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const [record] = (await answer) as [HealthRecord];
    await this.#health.terminate();
    return record;
  }
}
