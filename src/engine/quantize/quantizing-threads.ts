import path from "node:path";
import { Worker } from "node:worker_threads";
import type { Piece } from "./quantize-job.ts";
import type { ThreadData } from "./quantizer-thread.ts";

/** Pieces that a thread has been given, one of them while it computes another. */
const PIECES_AHEAD = 2;

/**
 * Converts pieces on several threads; what comes out is in the order of the pieces.
 * @param onEnd called when a thread has ended, which it never does by itself, with its exit code
 */
export async function* convertAll(
  pieces: Iterable<Piece>,
  data: ThreadData,
  threads: number,
  onEnd: (code: number) => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  const started = Array.from({ length: threads }, () => new Thread(data, onEnd));
  const ahead: Promise<Uint8Array>[] = [];
  let given = 0;
  for (const piece of pieces) {
    ahead.push(started[given++ % threads]!.convert(piece));
    if (ahead.length === threads * PIECES_AHEAD) yield await ahead.shift()!;
  }
  for (const converted of ahead) yield await converted;
}

/** Answers in the order in which it was asked. */
class Thread {
  readonly #worker: Worker;
  readonly #waiting: ((output: Uint8Array) => void)[] = [];

  constructor(data: ThreadData, onEnd: (code: number) => void) {
    const entry = `quantizer-thread${path.extname(import.meta.filename)}`;
    this.#worker = new Worker(path.join(import.meta.dirname, entry), { workerData: data });
    this.#worker.on("message", (output: Uint8Array) => this.#waiting.shift()?.(output));
    this.#worker.on("error", (error) => process.stderr.write(`${String(error)}\n`));
    this.#worker.on("exit", onEnd);
  }

  async convert(piece: Piece): Promise<Uint8Array> {
    return await new Promise((resolve) => {
      this.#waiting.push(resolve);
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
      this.#worker.postMessage(piece);
    });
  }
}
