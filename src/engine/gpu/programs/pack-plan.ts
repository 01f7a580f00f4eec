import type { Block, FusedPart } from "./fused-program.ts";
import type { BufferEntry, Step } from "./fusible.ts";
import type { Plan } from "./plan-steps.ts";
import { shareBindings } from "./share-bindings.ts";

/** A program of a plan. */
export interface PackedProgram {
  /** Its steps, as numbers of those of the plan. */
  readonly steps: readonly number[];
  readonly blocks: readonly Block[];
  readonly parts: readonly FusedPart[];
  readonly entries: readonly BufferEntry[];
  /** Workgroups of each part. */
  readonly counts: readonly number[];
  /** Workgroups of all blocks. */
  readonly workgroups: number;
}

/** Of a device. */
interface PackLimits {
  readonly storageBuffers: number;
  readonly workgroups: number;
}

/** The programs that run for a plan, as few as the limits allow; undefined: they would not be fewer than the steps. */
export function packPlan({ steps, stages }: Plan, limits: PackLimits): PackedProgram[] | undefined {
  const programs: PackedProgram[] = [];
  for (const stage of stages) {
    let blocks: Block[] = [];
    for (const block of stage) {
      const joined = programOf(steps, [...blocks, block], limits);
      const program = joined ?? programOf(steps, [block], limits);
      if (!program) return undefined;
      if (joined && blocks.length > 0) programs.pop();
      blocks = joined ? [...blocks, block] : [block];
      programs.push(program);
    }
  }
  return programs.length < steps.length ? programs : undefined;
}

function programOf(
  all: readonly Step[],
  blocks: readonly Block[],
  limits: PackLimits,
): PackedProgram | undefined {
  const numbers = blocks.flatMap(({ parts }) => parts);
  const steps = numbers.map((at) => all[at]).filter((step) => step !== undefined);
  const bound = shareBindings(steps);
  const workgroups = blocks
    .map(({ how, parts }) => (how === "chain" ? 1 : (all[parts[0] ?? 0]?.workgroups ?? 0)))
    .reduce((sum, each) => sum + each, 0);
  const threads = new Set(blocks.map(({ parts: [first = 0] }) => all[first]?.fusible.program.threads));
  if (threads.size > 1) return undefined;
  if (!bound || bound.storage > limits.storageBuffers || workgroups > limits.workgroups) return undefined;
  return {
    steps: numbers,
    blocks: blocks.map(({ how, parts }) => ({ how, parts: parts.map((part) => numbers.indexOf(part)) })),
    parts: bound.parts,
    entries: bound.entries,
    counts: steps.map(({ workgroups: own }) => own),
    workgroups,
  };
}
