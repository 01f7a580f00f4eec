import { closeSync, openSync, readSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { bytesOf, INVALID_WEIGHTS_EXIT_CODE, type TensorChunk } from "./quantize-job.ts";
import { InvalidWeights, Quantizer } from "./quantizer.ts";

/** Data with which a quantizer thread is started. */
export interface ThreadData {
  readonly module: WebAssembly.Module;
  readonly files: readonly string[];
}

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
