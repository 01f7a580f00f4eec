import http from "node:http";
import { parentPort, workerData } from "node:worker_threads";
import { z } from "zod";

/** Pause between two requests. */
const PAUSE_MS = 2;

const { url } = z.object({ url: z.string() }).parse(workerData);
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
let longest = 0;
let askedAt = performance.now();

parentPort?.on("message", () => {
  // A request that is not answered yet counts, too.
  parentPort?.postMessage(Math.max(longest, performance.now() - askedAt), []);
  longest = 0;
});

function ask(): void {
  askedAt = performance.now();
  const next = (): void => {
    longest = Math.max(longest, performance.now() - askedAt);
    setTimeout(ask, PAUSE_MS);
  };
  http
    .get(`${url}/health`, { agent }, (response) => response.resume().once("end", next))
    .once("error", () => setTimeout(ask, PAUSE_MS));
}

ask();
