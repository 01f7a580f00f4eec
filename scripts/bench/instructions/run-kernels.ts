import { existsSync, readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { TYPE, type TypeName } from "../../../test/support/dequantize.ts";
import { KernelHost } from "../../../test/support/kernel-host.ts";
import { describeDotProduct } from "../kernels/dot-product.ts";
import { randomWeights } from "../kernels/random-weights.ts";

/**
 * Runs kernels so that an emulator can count their instructions: arguments are types, numbers of columns, numbers of rows and the
 * length of a row, lists with commas, and the file of the kernels. Each run is announced by asking for a file that is not there, which the emulator's log
 * shows. With a last argument, subnormal, the scales of blocks are. Writes as JSON where machine code was made.
 */
const [types = "", columns = "", rows = "", k = "", object = "", subnormal] = process.argv.slice(2);
const length = Number(k);
const PAGES = 1024;

/** Ranges of memory that can be run, as the system tells them. */
function runnable(): string[] {
  return readFileSync("/proc/self/maps", "utf8")
    .split("\n")
    .filter((line) => line.includes("rwxp"))
    .map((line) => line.split(" ")[0]!);
}

const before = new Set(runnable());
const host = await KernelHost.start({ pages: PAGES, object: pathToFileURL(object) });
const isType = (name: string): name is TypeName => name in TYPE;
for (const type of types.split(",").filter(isType)) {
  for (const columnCount of columns.split(",").map(Number)) {
    for (const rowCount of rows.split(",").map(Number)) {
      const problem = host.prepare({
        type: TYPE[type],
        weights: randomWeights(type, rowCount, length, subnormal === "subnormal"),
        rows: rowCount,
        activations: Float32Array.from({ length: columnCount * length }, (_, index) =>
          Math.sin(index * index),
        ),
        k: length,
        workSize: 2 ** 22,
        backends: 1,
      });
      // V8 compiles in the first run, and the second one is counted.
      problem.run();
      existsSync(`/count/${type}/${columnCount}/${rowCount}`);
      problem.run();
      existsSync("/count/nothing");
      if (problem.read().fellBack) throw new Error(`the kernels do not cover ${type}`);
    }
  }
}
console.log(
  JSON.stringify({ ranges: runnable().filter((range) => !before.has(range)), dot: describeDotProduct() }),
);
