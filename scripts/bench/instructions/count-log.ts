import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";

/** A block of machine code, an instruction of it, a block's run, and a file that was asked for, in an emulator's log. */
const BLOCK = /^IN:/;
const INSTRUCTION = /^0x([0-9a-f]+): /;
const RUN = /^Trace \d+: \S+ \[[0-9a-f]+\/([0-9a-f]+)\//;
const ASKED = /"\/count\/([^"]+)"/;

/**
 * Counts the instructions that were run between two requests for files below /count, by the name of the first one, in what
 * qemu-user writes with `-d exec,in_asm,nochain,strace`.
 */
export async function countInstructions(log: string): Promise<Map<string, number>> {
  const lengths = new Map<string, number>();
  const counts = new Map<string, number>();
  let block: string | undefined;
  let isNew = false;
  let counted = "nothing";
  for await (const line of createInterface({ input: createReadStream(log), crlfDelay: Infinity })) {
    const asked = ASKED.exec(line);
    if (asked) {
      counted = asked[1]!;
      if (counted !== "nothing") counts.set(counted, 0);
    }
    if (BLOCK.test(line)) {
      isNew = true;
      continue;
    }
    const instruction = INSTRUCTION.exec(line);
    if (instruction) {
      if (isNew) {
        block = instruction[1]!.padStart(16, "0");
        lengths.set(block, 0);
        isNew = false;
      }
      if (block !== undefined) lengths.set(block, lengths.get(block)! + 1);
      continue;
    }
    const run = RUN.exec(line);
    if (run && counts.has(counted)) counts.set(counted, counts.get(counted)! + (lengths.get(run[1]!) ?? 0));
  }
  return counts;
}
