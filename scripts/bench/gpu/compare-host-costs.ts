import { mkdirSync } from "node:fs";
import os from "node:os";
import { prepareEngine } from "../../../src/engine/engine-image.ts";
import { ensureBenchModel } from "../cpu/bench-models.ts";
import { type HostCost, type HostCostTask, measureHostCost, nullSpec, type StepCost } from "./host-cost.ts";

/** Transformer blocks of models with about half a billion, three and tens of billions of weights. */
const BLOCKS = [14, 28, 56];

const TOKENS = 300;
const BATCH_SIZE = 512;
const PROMPT_TOKENS = 4 * BATCH_SIZE;
const REPEATS = 8;
/** Tokens of a prompt and an answer. */
const CONTEXT = 4096;

/** Cost of a step of a model to the host. */
interface BlocksCost {
  readonly blocks: number;
  /** True if steps of a shape that was computed before are replayed. */
  readonly replay: boolean;
  readonly cost: HostCost;
}

/**
 * Measures the host's cost for models of several numbers of blocks, which are made in a folder, with replay and without it; how
 * wide models are makes no difference to the host. Times and counts are of separate runs.
 */
export async function compareHostCosts(
  cacheDir: string,
  onMeasured: (blocks: number) => void,
): Promise<BlocksCost[]> {
  mkdirSync(cacheDir, { recursive: true });
  const engine = await prepareEngine({ cacheDir, kernels: "auto" });
  const costs: BlocksCost[] = [];
  for (const blocks of BLOCKS) {
    const file = ensureBenchModel(cacheDir, "tiny", "Q4_K_M", blocks);
    for (const replay of [false, true]) {
      const task: HostCostTask = {
        engine,
        spec: nullSpec(file, CONTEXT, { batchSize: BATCH_SIZE, replay }),
        tokens: TOKENS,
        promptTokens: PROMPT_TOKENS,
        repeats: REPEATS,
        counts: false,
      };
      const times = await measureHostCost(task);
      const counted = await measureHostCost({ ...task, counts: true });
      const both = (phase: keyof HostCost): StepCost => ({ ...counted[phase], ms: times[phase].ms });
      costs.push({ blocks, replay, cost: { decode: both("decode"), prefill: both("prefill") } });
    }
    onMeasured(blocks);
  }
  return costs;
}

/** A table with a row for each number of blocks, and what each further block costs. */
export function formatHostCosts(costs: readonly BlocksCost[]): string {
  const lines = [
    os.cpus()[0]?.model ?? "",
    "",
    "| | ms of processor time | programs | submissions | calls into Dawn | calls from llama.cpp |",
    "|---|---:|---:|---:|---:|---:|",
  ];
  for (const { blocks, replay, cost } of costs) {
    const how = `${blocks} blocks${replay ? "" : " without replay"}`;
    lines.push(row(`${how}, a token`, cost.decode));
    lines.push(row(`${how}, ${BATCH_SIZE} tokens of a prompt`, cost.prefill));
  }
  const repeated = costs.filter(({ replay }) => replay);
  const [first, last] = [repeated[0], repeated.at(-1)];
  if (first && last && last.blocks > first.blocks) {
    const more = (last.cost.decode.ms - first.cost.decode.ms) / (last.blocks - first.blocks);
    lines.push("", `Each further block: ${more.toFixed(3)} ms for a token with replay.`);
  }
  return lines.join("\n");
}

function row(what: string, { ms, programs, submissions, calls, imports }: StepCost): string {
  const counts = [programs, submissions, calls, imports].map((each) => each.toFixed(0));
  return `| ${what} | ${ms.toFixed(2)} | ${counts.join(" | ")} |`;
}
