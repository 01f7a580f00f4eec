#!/usr/bin/env node
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs, promisify } from "node:util";
import { z } from "zod";
import { countInstructions } from "./instructions/count-log.ts";
import { markdownTable } from "./daemon/statistics.ts";

const HELP = `Instructions of arm64 that the matrix kernels take, counted by an emulator.

  node scripts/bench/instructions.ts --root FOLDER [options]

  --root FOLDER       a root file system for arm64 with Node 24.20 or later
  --node FILE         that Node, in the folder (default usr/local/bin/node)
  --processors LIST   as the emulator names them (default max, which has a dot product of bytes, and cortex-a57, which has not)
  --types LIST        formats of the weights (default Q4_0,Q8_0,Q4_K,Q6_K)
  --columns LIST      columns of activations (default 1,4)
  --object FILE       the kernels (default wasm/kernels.o)
  --subnormal         let the halves that scale blocks be subnormal

For each 32 weights and one column, in the code that V8's optimizing compiler makes: what 48 rows of 2048 weights take more than
16, so that activations are not counted. Needs qemu-aarch64-static and setarch, on Linux. Counts are exact, and say
nothing about time.`;

const { values } = parseArgs({
  options: {
    root: { type: "string" },
    node: { type: "string", default: "usr/local/bin/node" },
    processors: { type: "string", default: "max,cortex-a57" },
    types: { type: "string", default: "Q4_0,Q8_0,Q4_K,Q6_K" },
    columns: { type: "string", default: "1,4" },
    object: { type: "string", default: path.join(import.meta.dirname, "../../wasm/kernels.o") },
    subnormal: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  },
});

/** Length of a row; the super-blocks of K types divide it. */
const K = 2048;
const [FEW_ROWS, MANY_ROWS] = [16, 48];
/** Only the kernel is optimized, in its first run; addresses are the same in each process. */
const NODE_FLAGS = ["--no-liftoff", "--random-seed=1", "--no-sparkplug", "--no-maglev", "--no-turbofan"];
const RUNNER = path.join(import.meta.dirname, "instructions", "run-kernels.ts");

const reportSchema = z.object({
  ranges: z.array(z.string().regex(/^[0-9a-f]+-[0-9a-f]+$/)).min(1),
  dot: z.string(),
});

if (values.help) console.log(HELP);
else if (values.root === undefined) throw new Error("--root is missing; see --help");
else for (const processor of values.processors.split(",")) console.log(await tableOf(values.root, processor));

/** A table of one kind of processor. */
async function tableOf(root: string, processor: string): Promise<string> {
  const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-instructions-"));
  try {
    const log = path.join(folder, "log");
    const { ranges, dot } = await run(root, processor, []);
    const filter = ranges.map((range) => range.replace(/^(.*)-(.*)$/, "0x$1..0x$2")).join(",");
    await run(root, processor, ["-d", "exec,in_asm,nochain,strace", "-dfilter", filter, "-D", log]);
    const counts = await countInstructions(log);
    const columns = values.columns.split(",").map(Number);
    const rows = values.types.split(",").map((type) => {
      const of = (columnCount: number, rowCount: number): number =>
        counts.get(`${type}/${columnCount}/${rowCount}`) ?? NaN;
      const cells = columns.map((columnCount) => {
        const more = of(columnCount, MANY_ROWS) - of(columnCount, FEW_ROWS);
        return ((more / ((MANY_ROWS - FEW_ROWS) * K * columnCount)) * 32).toFixed(1);
      });
      return [type].concat(cells);
    });
    const head = ["", ...columns.map((count) => (count === 1 ? "one column" : `each of ${count} columns`))];
    return `${processor}: ${dot}\n\n${markdownTable(head, rows)}\n`;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function run(
  root: string,
  processor: string,
  emulatorFlags: readonly string[],
): Promise<z.infer<typeof reportSchema>> {
  const emulator = ["qemu-aarch64-static", "-cpu", processor, "-L", root, ...emulatorFlags];
  const scales = values.subnormal ? "subnormal" : "moderate";
  const problems = [values.types, values.columns, `${FEW_ROWS},${MANY_ROWS}`, String(K)];
  const node = [path.join(root, values.node), ...NODE_FLAGS];
  const args = ["-R", ...emulator, ...node, RUNNER, ...problems, path.resolve(values.object), scales];
  const { stdout } = await promisify(execFile)("setarch", args);
  return reportSchema.parse(JSON.parse(stdout));
}
