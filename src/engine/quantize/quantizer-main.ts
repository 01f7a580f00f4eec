import { readFile } from "node:fs/promises";
import { buildQuantizerImage } from "../../../wasm/quantizer-image.ts";
import { onParentGone, parentInput, writeToParent } from "../channel/parent-channel.ts";
import { isRestricted, UNRESTRICTED_EXIT_CODE } from "../permission-model.ts";
import { piecesOf, type QuantizeJob } from "./quantize-job.ts";
import { convertAll } from "./quantizing-threads.ts";

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
const data = { module, files: job.files };
const converted = convertAll(piecesOf(job), data, job.threads, (code) => process.exit(code || 1));
for await (const bytes of converted) if (!writeToParent(bytes)) break;
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
