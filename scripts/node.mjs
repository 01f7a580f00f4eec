// @ts-check
// Runs a script or a tool of this repository under a Node that can run its sources, whichever Node runs this file:
//
//   node scripts/node.mjs FILE [ARGUMENT …]        or: npm run node -- FILE [ARGUMENT …]
//
// npm 9 and 10 leave out node_modules/.bin/node (npm/cli issue 4362), so scripts cannot rely on it.
import path from "node:path";
import { chooseRuntime } from "../src/launch/choose-runtime.mjs";
import { handOver } from "../src/launch/hand-over.mjs";

const [file, ...args] = process.argv.slice(2);
if (file === undefined || file === "--help") {
  process.stdout.write("Usage: npm run node -- FILE [ARGUMENT …]\n");
  process.exitCode = file === undefined ? 2 : 0;
} else {
  const { problem, note, binary = process.execPath } = await chooseRuntime();
  if (problem === undefined) {
    if (note !== undefined) process.stderr.write(`${note}\n`);
    // What the tool starts by the name "node" is the same one.
    process.env["PATH"] = [path.dirname(binary), process.env["PATH"]].join(path.delimiter);
    await handOver(binary, [file, ...args]);
  } else {
    process.stderr.write(`${problem}\n`);
    process.exitCode = 1;
  }
}
