import { closeSync, openSync, readSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { buildQuantizerImage } from "../../../wasm/quantizer-image.ts";
import { endWithParent, writeToParent } from "../channel/parent-channel.ts";
import { isRestricted, UNRESTRICTED_EXIT_CODE } from "../child-process.ts";
import {
  bytesOf,
  chunksOf,
  INVALID_WEIGHTS_EXIT_CODE,
  type QuantizeJob,
  type TensorChunk,
} from "./quantize-job.ts";
import { InvalidWeights, Quantizer } from "./quantizer.ts";

/**
 * Entry of the process that quantizes the tensors of one model, and of its threads. It may read only its code and the
 * model's files. It reads its job as a line of JSON from standard input, and writes the tensors' data to the channel's
 * descriptor.
 *
 * Argument: path of llama.cpp's WASM.
 */

interface ThreadData {
  readonly module: WebAssembly.Module;
  readonly files: readonly string[];
}

/** Chunks that a thread has at once: one to convert, and one that waits. */
const CHUNKS_PER_THREAD = 2;

/** Worker thread that converts chunks in the order of the calls. */
class QuantizerThread {
  readonly #worker: Worker;
  readonly #waiting: ((output: Uint8Array) => void)[] = [];

  constructor(data: ThreadData, onEnd: (code: number) => void) {
    this.#worker = new Worker(import.meta.filename, { workerData: data });
    this.#worker.on("message", (output: Uint8Array) => this.#waiting.shift()?.(output));
    this.#worker.on("error", (error) => process.stderr.write(`${String(error)}\n`));
    this.#worker.on("exit", onEnd);
  }

  async convert(chunk: TensorChunk): Promise<Uint8Array> {
    return await new Promise((resolve) => {
      this.#waiting.push(resolve);
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
      this.#worker.postMessage(chunk);
    });
  }
}

if (isMainThread) await runProcess();
else await runThread();

async function runProcess(): Promise<void> {
  if (!isRestricted()) process.exit(UNRESTRICTED_EXIT_CODE);
  endWithParent();
  const [, , wasmPath = ""] = process.argv;
  const job = await readJob();
  const module = await WebAssembly.compile(await buildQuantizerImage(await readFile(wasmPath)));
  const threadData = { module, files: job.files };
  const convertedChunks = convertAll(chunksOf(job), threadData, job.threads, (code) =>
    process.exit(code || 1),
  );
  for await (const bytes of convertedChunks) if (!writeToParent(bytes)) break;
  // The threads would wait for more chunks.
  process.exit();
}

async function runThread(): Promise<void> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const { module, files } = workerData as ThreadData;
  const quantizer = await Quantizer.start(module);

  parentPort?.on("message", (chunk: TensorChunk) => {
    const input = read(files[chunk.file]!, chunk.offset, bytesOf(chunk.weights, chunk.from));
    try {
      const output = quantizer.convert(input, chunk);
      parentPort?.postMessage(output, [output.buffer]);
    } catch (error) {
      if (!(error instanceof InvalidWeights)) throw error;
      // The daemon knows this code; it would not trust a message of this process.
      process.exit(INVALID_WEIGHTS_EXIT_CODE);
    }
  });
}

/** Reads the daemon's job; the pipe stays open as long as the daemon runs. */
async function readJob(): Promise<QuantizeJob> {
  return await new Promise((resolve) => {
    let text = "";
    process.stdin.setEncoding("utf8").on("data", (part: string) => {
      text += part;
      if (text.endsWith("\n")) resolve(JSON.parse(text));
    });
  });
}

/**
 * Converts chunks on several threads and yields the results in the same order.
 * @param onEnd called with the exit code of a thread that ended unexpectedly
 */
async function* convertAll(
  chunks: Iterable<TensorChunk>,
  data: ThreadData,
  threads: number,
  onEnd: (code: number) => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  const started = Array.from({ length: threads }, () => new QuantizerThread(data, onEnd));
  const ahead: Promise<Uint8Array>[] = [];
  let count = 0;
  for (const chunk of chunks) {
    ahead.push(started[count++ % threads]!.convert(chunk));
    if (ahead.length === threads * CHUNKS_PER_THREAD) yield await ahead.shift()!;
  }
  for (const converted of ahead) yield await converted;
}

function read(file: string, offset: number, bytes: number): Uint8Array {
  const input = new Uint8Array(bytes);
  const fd = openSync(file, "r");
  try {
    for (let done = 0; done < bytes;) {
      const count = readSync(fd, input, done, bytes - done, offset + done);
      if (count === 0) throw new Error("the model's file has become shorter");
      done += count;
    }
    return input;
  } finally {
    closeSync(fd);
  }
}
