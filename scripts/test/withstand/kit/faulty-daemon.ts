import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { z } from "zod";
import { type DaemonOptions, startDaemon, type TestDaemon } from "../../../../test/support/start-daemon.ts";

const PRELOAD = pathToFileURL(path.join(import.meta.dirname, "inject-faults.mjs")).href;
/** How often the daemon is looked at for having taken an order. */
const LOOK_MS = 5;
/** Much longer than any request takes. */
const LONGEST_ANSWER_MS = 30_000;

/** Where the daemon meets the system. */
export const FAULT_KINDS = [
  "spawn",
  "open",
  "stat",
  "save",
  "listen",
  "accept",
  "connect",
  "send",
  "write",
] as const;

/** Which calls fail: the first `after` of a kind succeed, the next `times` fail. */
export interface Fault {
  readonly kind: (typeof FAULT_KINDS)[number];
  readonly error: "EMFILE" | "ENFILE" | "ENOMEM" | "EAGAIN" | "ENOSPC" | "EPIPE" | "EROFS" | "EIO";
  readonly after: number;
  readonly times: number;
}

export interface Answer {
  /** 0: the connection was closed before there was an answer. */
  readonly status: number;
  readonly body: string;
}

const reportSchema = z.object({
  id: z.number(),
  /** Calls of each kind since the order before. */
  seen: z.record(z.string(), z.number()),
  /** Those that were made to fail. */
  fired: z.number(),
});
type FaultReport = z.infer<typeof reportSchema>;
const NO_FAULT = { kind: "none", error: "EIO", after: 0, times: 0 };

/** A real daemon whose system calls fail on command. */
export class FaultyDaemon {
  readonly daemon: TestDaemon;
  readonly #folder: string;
  #lastId = 0;

  private constructor(daemon: TestDaemon, folder: string) {
    this.daemon = daemon;
    this.#folder = folder;
  }

  static async start(options: DaemonOptions = {}): Promise<FaultyDaemon> {
    const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-faults-"));
    const env = { ...options.env, NODE_OPTIONS: `--import=${PRELOAD}`, DAYBREAK_TEST_FAULTS: folder };
    return new FaultyDaemon(await startDaemon({ ...options, env }), folder);
  }

  /** Makes calls fail from now on. */
  async arm(fault: Fault): Promise<void> {
    await this.#order(fault);
  }

  /** Ends the faults, and returns the calls since the last command. */
  async disarm(): Promise<FaultReport> {
    return await this.#order(NO_FAULT);
  }

  /** Sends a request on a new connection. */
  async ask(method: string, route: string, body?: unknown): Promise<Answer> {
    return await new Promise((resolve) => {
      const request = http.request(
        new URL(route, this.daemon.url),
        {
          method,
          agent: false,
          headers: { connection: "close", ...(body !== undefined && { "content-type": "application/json" }) },
        },
        (response) => {
          let text = "";
          response.setEncoding("utf8").on("data", (part: string) => (text += part));
          response.once("close", () => resolve({ status: response.statusCode ?? 0, body: text }));
        },
      );
      request.setTimeout(LONGEST_ANSWER_MS, () => request.destroy(new Error("no answer in time")));
      request.once("error", (error) => resolve({ status: 0, body: error.message }));
      request.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  async stop(): Promise<void> {
    await this.daemon.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #order(order: object): Promise<FaultReport> {
    const id = ++this.#lastId;
    writeFileSync(path.join(this.#folder, "order.json"), JSON.stringify({ id, ...order }));
    this.daemon.kill("SIGUSR2");
    const end = new AbortController();
    void this.daemon.exited.then(() => end.abort());
    while (!end.signal.aborted) {
      const report = this.#report();
      if (report?.id === id) return report;
      await sleep(LOOK_MS);
    }
    throw new Error(`the daemon has ended:\n${this.daemon.logs().slice(-4000)}`);
  }

  #report(): FaultReport | undefined {
    try {
      return reportSchema.parse(JSON.parse(readFileSync(path.join(this.#folder, "answer.json"), "utf8")));
    } catch {
      return undefined; // it has never answered yet
    }
  }
}
