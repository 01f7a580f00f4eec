import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { writeToParent } from "../channel/parent-channel.ts";

/**
 * Entry of a process that checks that engines can run under this Node and inside a sandbox (shared memory, threads,
 * WebAssembly, pipes), and that the sandbox is in effect. Echoes its input, and exits with code 0 when both are true.
 *
 * Argument: "own-processes" when processes outside the sandbox must not be visible.
 */

/** The smallest WebAssembly module with a shared memory. */
const SHARED_MEMORY = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 5, 4, 1, 3, 1, 2);

/** Highest parent id inside a new process namespace. */
const FIRST_PROCESS = 1;

if (process.argv[2] === "own-processes" && process.ppid > FIRST_PROCESS) {
  process.stderr.write("other processes are still visible\n");
  process.exit(1);
}
await WebAssembly.compile(SHARED_MEMORY);
const [greeting]: Buffer[] = await once(process.stdin, "data");
if (greeting) writeToParent(greeting);
const shared = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
const worker = new Worker(
  'const { workerData } = require("node:worker_threads"); Atomics.wait(workerData, 0, 0); process.exit(0);',
  { eval: true, workerData: shared },
);
worker.on("online", () => {
  Atomics.store(shared, 0, 1);
  Atomics.notify(shared, 0);
});
worker.on("error", (error) => {
  process.stderr.write(`${String(error)}\n`);
  process.exit(1);
});
worker.on("exit", (code) => process.exit(code));
