import { readFile } from "node:fs/promises";
import path from "node:path";
import { Worker } from "node:worker_threads";
import { buildQuantizerImage } from "../../../wasm/quantizer-image.ts";
import { onParentGone, parentInput, writeToParent } from "../channel/parent-channel.ts";
import { isRestricted, UNRESTRICTED_EXIT_CODE } from "../child-process.ts";
import { type Piece, piecesOf, type QuantizeJob } from "./quantize-job.ts";
import type { ThreadData } from "./quantizer-thread.ts";

/**
 * The entry of a process that quantizes the tensors of one model, whose files are all that it may read besides its code.
 * It gets its job as a line of JSON on standard input, and writes the tensors' data to the channel's descriptor.
 *
 * Argument: path of llama.cpp's WASM.
 */

if (!isRestricted()) process.exit(UNRESTRICTED_EXIT_CODE);

// It must not outlive its daemon, even while its threads compute.
onParentGone(() => {
  process.kill(process.pid, "SIGKILL");
  // The first process of a PID namespace cannot kill itself with a signal.
  process.abort();
});

const [, , wasmPath = ""] = process.argv;
const job = await readJob();
const module = await WebAssembly.compile(await buildQuantizerImage(await readFile(wasmPath)));
const quantizerMainData = { module, files: job.files };

/** Pieces that a thread has been given, one of them while it computes another. */
const PIECES_AHEAD = 2;

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

const quantizerMainConverted = convertAll(piecesOf(job), quantizerMainData, job.threads, (code) =>
  process.exit(code || 1),
);
for await (const bytes of quantizerMainConverted) if (!writeToParent(bytes)) break;
// Its threads would wait for more.
process.exit();

/** The daemon's job; the pipe stays open for as long as the daemon lives. */
async function readJob(): Promise<QuantizeJob> {
  return await new Promise((resolve) => {
    let text = "";
    parentInput()
      .setEncoding("utf8")
      .on("data", (part: string) => {
        text += part;
        if (text.endsWith("\n")) resolve(JSON.parse(text));
      });
  });
}

/**
 * Converts pieces on several threads; what comes out is in the order of the pieces.
 * @param onEnd called when a thread has ended, which it never does by itself, with its exit code
 */
async function* convertAll(
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
