import { once } from "node:events";
import { Worker } from "node:worker_threads";

/** Requests /health continuously from a separate thread; the longest wait shows how long the daemon's event loop was blocked. */
export class LoopWatch {
  readonly #worker: Worker;

  private constructor(worker: Worker) {
    this.#worker = worker;
  }

  static async start(url: string): Promise<LoopWatch> {
    const worker = new Worker(new URL("loop-watch-thread.ts", import.meta.url), { workerData: { url } });
    await once(worker, "online");
    return new LoopWatch(worker);
  }

  /** The longest wait since the last call, in milliseconds. */
  async reset(): Promise<number> {
    const answer = once(this.#worker, "message");
    this.#worker.postMessage("reset", []);
    const [longest]: unknown[] = await answer;
    return Number(longest);
  }

  async stop(): Promise<void> {
    await this.#worker.terminate();
  }
}
