import path from "node:path";
import { Worker } from "node:worker_threads";
import { abortable, Mutex } from "../../async/promises.ts";
import { backgroundTimer, Watchdog } from "../../async/timers.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { GrammarResult, GrammarWork } from "../../grammar/grammar-work.ts";

/** What work costs is counted, and the most of it takes a second or two of a processor, unless we have missed something. */
const MAX_MS = 20_000;
/** Without work for so long, the thread ends and leaves its memory to models. */
const IDLE_MS = 60_000;
/** Nested schemas are followed by recursion. */
const STACK_MB = 4;
/** A grammar has 256 KiB at most; what it is made of takes some fifty times as much. */
const HEAP_MB = 512;

/** Work for which one or several requests wait, such as those of an answer with several choices: it is done once. */
interface Asked {
  askers: number;
  result?: Promise<GrammarResult>;
  isOver: boolean;
}

/**
 * Makes grammars in a thread, one after the other, while the daemon passes on other requests' tokens. The thread begins with
 * the first work, and another one takes its place if it ends.
 */
export class GrammarThread {
  readonly #mutex = new Mutex();
  readonly #mostMs: number;
  /** By the work. */
  readonly #asked = new Map<string, Asked>();
  #worker: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;

  /** @param mostMs for which one grammar may be in the making */
  constructor(mostMs: number = MAX_MS) {
    this.#mostMs = mostMs;
  }

  /**
   * Refuses what takes too long, or more memory than the thread has.
   * @throws the signal's reason when it aborts: the thread ends with work for which nobody else waits, or clients who ask and
   *   leave could keep it from all others
   */
  async make(work: GrammarWork, signal: AbortSignal): Promise<GrammarResult> {
    const key = JSON.stringify(work);
    const asked = this.#asked.get(key) ?? { askers: 0, isOver: false };
    this.#asked.set(key, asked);
    asked.askers += 1;
    try {
      const turn = await this.#mutex.lock(signal);
      if (asked.result) turn[Symbol.dispose]();
      else asked.result = this.#inTurn(asked, work, turn);
      return await abortable(asked.result, signal);
    } finally {
      asked.askers -= 1;
      if (asked.askers === 0) {
        this.#asked.delete(key);
        if (asked.result && !asked.isOver) void this.close();
      }
    }
  }

  /** Ends the thread; work that has begun fails. */
  async close(): Promise<void> {
    clearTimeout(this.#idle);
    const worker = this.#worker;
    this.#worker = undefined;
    await worker?.terminate();
  }

  async #inTurn(asked: Asked, work: GrammarWork, turn: Disposable): Promise<GrammarResult> {
    clearTimeout(this.#idle);
    try {
      return await this.#ask(work);
    } finally {
      asked.isOver = true;
      this.#idle = backgroundTimer(() => void this.close(), IDLE_MS);
      turn[Symbol.dispose]();
    }
  }

  async #ask(work: GrammarWork): Promise<GrammarResult> {
    const worker = (this.#worker ??= this.#start());
    const { promise, resolve, reject } = Promise.withResolvers<GrammarResult>();
    const late = new Watchdog(this.#mostMs, () => {
      resolve(tooLarge(work));
      void this.close();
    });
    const fail = (error: Error): void => (isExhausted(error) ? resolve(tooLarge(work)) : reject(error));
    const end = (): void => reject(new ServiceError("shutting_down", "The daemon is shutting down."));
    worker.on("message", resolve);
    worker.on("error", fail);
    worker.on("exit", end);
    // Nothing else may keep the daemon's process alive.
    worker.ref();
    try {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
      worker.postMessage(work);
      return await promise;
    } finally {
      late.stop();
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
    // The work that it was given fails, if there is any; the next one gets another thread.
    const forget = (): void => {
      if (this.#worker === worker) this.#worker = undefined;
    };
    return worker.on("error", forget).on("exit", forget);
  }
}

/** Whether the thread had too little memory, of which its stack is a part; other errors are ours. */
function isExhausted(error: Error): boolean {
  return error.name === "RangeError" || ("code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY");
}

function tooLarge(work: GrammarWork): GrammarResult {
  const { kind } = work;
  if (kind === "llama") {
    const dropped = [{ path: "", keyword: "parameters" }];
    return { kind, missing: work.schemas.map(() => ({ dropped, lost: [] })) };
  }
  if (kind === "rest") return { kind: "made", grammar: undefined, unenforced: [] };
  if (kind === "texts" || kind === "check")
    return { kind: "unsayable", message: "following it would take too long" };
  const reason = "The schema is too large: following it would take too long.";
  return { kind: "refused", reason, path: "", keyword: "", tool: undefined };
}
