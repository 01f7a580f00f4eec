import { readFileSync } from "node:fs";
import http from "node:http";
import { parentPort, workerData } from "node:worker_threads";
import { z } from "zod";

/**
 * Asks /health again and again, in a thread of its own so that a busy script does not look like a busy daemon, and without
 * the time for which the daemon or this thread waited for a processor, so that a busy machine does not either. Sends what it
 * has seen when it is asked to stop.
 */

/** Pause between two requests. */
const PAUSE_MS = 100;
/** Timeout of a request. */
const LONGEST_MS = 30_000;

/** Record of the health checks. */
export interface HealthRecord {
  readonly asked: number;
  /** Questions without an answer of 200. */
  readonly failed: readonly string[];
  /** Slowest answers in milliseconds, the slowest first; as many as are worth a look. */
  readonly slowestMs: readonly number[];
}

const KEPT = 20;
const { url, pid } = z.object({ url: z.string(), pid: z.int() }).parse(workerData);
/** Threads that take part in an answer: the daemon's first one and this one. */
const THREADS = [`/proc/${pid}/task/${pid}/schedstat`, "/proc/thread-self/schedstat"];
const failed: string[] = [];
let slowestMs: number[] = [];
let asked = 0;
const stop = new AbortController();

parentPort?.once("message", () => stop.abort());

async function watch(): Promise<void> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  while (!stop.signal.aborted) {
    const startedAt = performance.now() - starvedMs();
    const outcome = await ask(agent);
    asked += 1;
    if (outcome !== "200" && failed.length < KEPT) failed.push(outcome);
    const millis = performance.now() - starvedMs() - startedAt;
    slowestMs = [...slowestMs, millis].toSorted((a, b) => b - a).slice(0, KEPT);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  agent.destroy();
  parentPort?.postMessage({ asked, failed, slowestMs } satisfies HealthRecord, []);
}

/** Milliseconds for which the threads were ready and waited for a processor; 0 where the system does not tell. */
function starvedMs(): number {
  try {
    return THREADS.reduce((sum, file) => sum + Number(readFileSync(file, "utf8").split(" ")[1]) / 1e6, 0);
  } catch {
    return 0;
  }
}

function ask(agent: http.Agent): Promise<string> {
  return new Promise((resolve) => {
    const request = http.get(`${url}/health`, { agent, timeout: LONGEST_MS }, (response) => {
      response.resume().once("close", () => resolve(String(response.statusCode)));
    });
    request.once("timeout", () => request.destroy(new Error(`no answer within ${LONGEST_MS} ms`)));
    request.once("error", (error) => resolve(error.message));
  });
}

await watch();
