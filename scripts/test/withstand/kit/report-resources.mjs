// Loaded into a daemon before it starts: writes once in a while what it holds, as a line of JSON.
import { appendFileSync } from "node:fs";
import process from "node:process";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const file = process.env["RESOURCE_REPORT"];
const everyMs = Number(process.env["RESOURCE_REPORT_MS"]);
setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc");

function report() {
  // What is garbage is not a leak.
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  const held = process.getActiveResourcesInfo();
  const count = (/** @type {RegExp} */ kind) => held.filter((name) => kind.test(name)).length;
  const line = { heap: heapUsed + external, timers: count(/Timeout|Immediate/), sockets: count(/TCP|Pipe/) };
  appendFileSync(file ?? "", `${JSON.stringify(line)}\n`);
}

if (file) setInterval(report, everyMs).unref();
