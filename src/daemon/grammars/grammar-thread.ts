import path from "node:path";
import { Worker } from "node:worker_threads";
import { abortable } from "../../async/abortable.ts";
import { Mutex } from "../../async/mutex.ts";
import { backgroundTimer } from "../../async/watchdog.ts";
import type { GrammarResult, GrammarWork } from "../../schema/grammar-work.ts";

/** What work costs is counted, and the most of it takes a second or two of a processor, unless we have missed something. */
const MOST_MS = 20_000;
/** Without work for so long, the thread ends and leaves its memory to models. */
const IDLE_MS = 60_000;
/** Nested schemas are followed by recursion. */
const STACK_MB = 4;
/** A grammar has 256 KiB at most; what it is made of takes some fifty times as much. */
const HEAP_MB = 512;

const TOO_LARGE: GrammarResult = {
  kind: "refused",
  reason: "The schema is too large: following it would take too long.",
  path: "",
  keyword: "",
  tool: undefined,
};

/**
 * Makes grammars in a thread, one after the other, while the daemon passes on other requests' tokens. The thread begins with
 * the first work, and another one takes its place if it ends.
 */
export class GrammarThread {
  readonly #mutex = new Mutex();
  #worker: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;

  /**
   * Refuses what takes too long, or more memory than the thread has.
   * @throws the signal's reason when it aborts: work that has begun then still comes to its end
   */
  async make(work: GrammarWork, signal: AbortSignal): Promise<GrammarResult> {
    const turn = await this.#mutex.lock(signal);
    clearTimeout(this.#idle);
    const result = this.#ask(work).finally(() => {
      this.#idle = backgroundTimer(() => void this.close(), IDLE_MS);
      turn[Symbol.dispose]();
    });
    return await abortable(result, signal);
  }

  async close(): Promise<void> {
    clearTimeout(this.#idle);
    const worker = this.#worker;
    this.#worker = undefined;
    await worker?.terminate();
  }

  async #ask(work: GrammarWork): Promise<GrammarResult> {
    const worker = (this.#worker ??= this.#start());
    const { promise, resolve } = Promise.withResolvers<GrammarResult>();
    const fail = (): void => {
      resolve(TOO_LARGE);
      void this.close();
    };
    const late = backgroundTimer(fail, MOST_MS);
    worker.on("message", resolve);
    worker.on("error", fail);
    worker.on("exit", fail);
    // Nothing else may keep the daemon's process alive.
    worker.ref();
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    worker.postMessage(work);
    try {
      return await promise;
    } finally {
      clearTimeout(late);
      worker.off("message", resolve);
      worker.off("error", fail);
      worker.off("exit", fail);
      worker.unref();
    }
  }

  #start(): Worker {
    const entry = `make-grammars${path.extname(import.meta.filename)}`;
    const worker = new Worker(path.join(import.meta.dirname, entry), {
      resourceLimits: { stackSizeMb: STACK_MB, maxOldGenerationSizeMb: HEAP_MB },
    });
    // The work that it was given fails, if there is any; the next one gets another thread.
    const forget = (): void => {
      if (this.#worker === worker) this.#worker = undefined;
    };
    return worker.on("error", forget).on("exit", forget);
  }
}
