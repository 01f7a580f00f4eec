// Tries what an engine process must not be able to do, and prints how each attempt ended.
// Arguments: a file it may read, one it may not, a folder, a port on which somebody listens.
import fs from "node:fs";
import net from "node:net";
import { Worker } from "node:worker_threads";

const [, , allowed, secret, folder, port] = process.argv;

const outcome = async (attempt) => {
  try {
    await attempt();
    return "done";
  } catch (error) {
    return error.code ?? error.message;
  }
};

/** Reads a file in a worker; rejects with the worker's error. */
const readInWorker = (file) =>
  new Promise((resolve, reject) => {
    const code = `
      const { parentPort, workerData } = require("node:worker_threads");
      try { require("node:fs").readFileSync(workerData); parentPort.postMessage(null); }
      catch (error) { parentPort.postMessage(error.code); }`;
    const worker = new Worker(code, { eval: true, workerData: file });
    worker.on("message", (denial) => (denial === null ? resolve() : reject({ code: denial })));
  });

const results = {
  readOwn: await outcome(() => fs.readFileSync(allowed)),
  readOther: await outcome(() => fs.readFileSync(secret)),
  readOtherInWorker: await outcome(() => readInWorker(secret)),
  listFolder: await outcome(() => fs.readdirSync(folder)),
  write: await outcome(() => fs.writeFileSync(`${folder}/written`, "x")),
  writeOwn: await outcome(() => fs.appendFileSync(allowed, "x")),
  spawn: await outcome(async () =>
    (await import("node:child_process")).execFileSync(process.execPath, ["-v"]),
  ),
  connect: await outcome(
    () =>
      new Promise((resolve, reject) => {
        net.connect(Number(port), "127.0.0.1").on("connect", resolve).on("error", reject);
      }),
  ),
  listen: await outcome(() => net.createServer().listen(0)),
  fetch: await outcome(async () => {
    try {
      await fetch(`http://127.0.0.1:${port}/`);
    } catch (error) {
      throw error.cause ?? error;
    }
  }),
  addon: await outcome(() => process.dlopen({ exports: {} }, `${folder}/addon.node`)),
};
console.log(JSON.stringify({ results, environment: process.env }));
process.exit();
