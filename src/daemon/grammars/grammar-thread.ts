import path from "node:path";
import { Worker } from "node:worker_threads";
import { abortable, Mutex } from "../../async/promises.ts";
import { unrefTimer, Watchdog } from "../../async/timers.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { GrammarResult, GrammarWork } from "../../grammar/grammar-work.ts";

/** Timeout of a grammar. The compiler limits its own work to a second or two, so this is a safety net. */
const MAX_MS = 20_000;
/** Idle time after which the thread ends and frees its memory. */
const IDLE_MS = 60_000;
/** Stack of the thread: nested schemas are compiled recursively. */
const STACK_MB = 4;
/** Heap of the thread. A grammar has at most 256 KiB; compiling it takes some fifty times as much. */
const HEAP_MB = 512;

/** Compilation that several requests may share, such as those of an answer with several choices. */
interface PendingJob {
  waiters: number;
  result?: Promise<GrammarResult>;
  isDone: boolean;
}

/**
 * Compiles grammars one after the other in a thread, so that the main thread can stream tokens meanwhile. The thread
 * starts with the first job, and is replaced if it ends.
 */
export class GrammarThread {
  readonly #mutex = new Mutex();
  readonly #maxMs: number;
  /** Jobs by their work in JSON. */
  readonly #jobs = new Map<string, PendingJob>();
  #worker: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;

  /** @param maxMs timeout of one grammar */
  constructor(maxMs: number = MAX_MS) {
    this.#maxMs = maxMs;
  }

  /**
   * Compiles a grammar. Work that takes too long or too much memory is refused. If the signal aborts and no other
   * request waits for the job, the thread is ended: otherwise clients that disconnect could keep it busy.
   * @throws the signal's reason if it aborts
   */
  async make(work: GrammarWork, signal: AbortSignal): Promise<GrammarResult> {
    const key = JSON.stringify(work);
    const job = this.#jobs.get(key) ?? { waiters: 0, isDone: false };
    this.#jobs.set(key, job);
    job.waiters += 1;
    try {
      const lock = await this.#mutex.lock(signal);
      if (job.result) lock[Symbol.dispose]();
      else job.result = this.#runLocked(job, work, lock);
      return await abortable(job.result, signal);
    } finally {
      job.waiters -= 1;
      if (job.waiters === 0) {
        this.#jobs.delete(key);
        if (job.result && !job.isDone) void this.close();
      }
    }
  }

  /** Ends the thread; running work fails. */
  async close(): Promise<void> {
    clearTimeout(this.#idle);
    const worker = this.#worker;
    this.#worker = undefined;
    await worker?.terminate();
  }

  async #runLocked(job: PendingJob, work: GrammarWork, lock: Disposable): Promise<GrammarResult> {
    clearTimeout(this.#idle);
    try {
      return await this.#run(work);
    } finally {
      job.isDone = true;
      this.#idle = unrefTimer(() => void this.close(), IDLE_MS);
      lock[Symbol.dispose]();
    }
  }

  async #run(work: GrammarWork): Promise<GrammarResult> {
    const worker = (this.#worker ??= this.#start());
    const { promise, resolve, reject } = Promise.withResolvers<GrammarResult>();
    const watchdog = new Watchdog(this.#maxMs, () => {
      resolve(tooLargeResult(work));
      void this.close();
    });
    const fail = (error: Error): void => (isExhausted(error) ? resolve(tooLargeResult(work)) : reject(error));
    const end = (): void => reject(new ServiceError("shutting_down", "The daemon is shutting down."));
    worker.on("message", resolve);
    worker.on("error", fail);
    worker.on("exit", end);
    // Keeps the process alive only while work runs.
    worker.ref();
    try {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
      worker.postMessage(work);
      return await promise;
    } finally {
      watchdog.stop();
      worker.off("message", resolve);
      worker.off("error", fail);
      worker.off("exit", end);
      worker.unref();
    }
  }

  #start(): Worker {
    const entry = `make-grammars${path.extname(import.meta.filename)}`;
    const worker = new Worker(path.join(import.meta.dirname, entry), {
      resourceLimits: { stackSizeMb: STACK_MB, maxOldGenerationSizeMb: HEAP_MB },
    });
    // Running work fails; the next job starts another thread.
    const forget = (): void => {
      if (this.#worker === worker) this.#worker = undefined;
    };
    return worker.on("error", forget).on("exit", forget);
  }
}

/** True if the thread ran out of heap or stack; other errors are bugs. */
function isExhausted(error: Error): boolean {
  return error.name === "RangeError" || ("code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY");
}

function tooLargeResult(work: GrammarWork): GrammarResult {
  const { kind } = work;
  if (kind === "llama") {
    const dropped = [{ path: "", keyword: "parameters" }];
    return { kind, schemas: work.schemas.map(() => ({ schema: { type: "object" }, dropped, ignored: [] })) };
  }
  if (kind === "rest") return { kind: "made", grammar: undefined, ignored: [], checked: [] };
  if (kind === "texts" || kind === "pattern" || kind === "check")
    return { kind: "unsayable", message: "following it would take too long" };
  const reason = "The schema is too large: following it would take too long.";
  return { kind: "refused", reason, path: "", keyword: "", tool: undefined };
}
