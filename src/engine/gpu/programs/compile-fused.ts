import { countsSlot, fuse } from "./fused-program.ts";
import type { BufferEntry } from "./fusible.ts";
import type { FusingDevice, FusingPipeline } from "./fusing-classes.ts";
import type { PackedProgram } from "./pack-plan.ts";

/** GPUBufferUsage.UNIFORM | COPY_DST */
const COUNTS_USAGE = 0x48;
const WORDS_OF_VECTOR = 4;

interface CompiledProgram {
  readonly pipeline: FusingPipeline;
  readonly entries: readonly BufferEntry[];
}

type CompileFused = (device: FusingDevice, program: PackedProgram) => Promise<CompiledProgram | undefined>;

/** Compiles fused programs in the background, each once for a device; undefined if the driver or Dawn refuses it. */
export function createFusedCompiler(): CompileFused {
  const compiled = new WeakMap<FusingDevice, Map<string, Promise<FusingPipeline | undefined>>>();
  const countsOf = createCounts();
  const numbers = new WeakMap<object, number>();
  let last = 0;
  const numberOf = (program: object): number => {
    let number = numbers.get(program);
    if (number === undefined) numbers.set(program, (number = ++last));
    return number;
  };
  return async (device, { blocks, parts, entries, counts }) => {
    // Writing the code takes longer than a token may: all blocks of a model have the same.
    const key = JSON.stringify([
      blocks,
      parts.map(({ program, slots, vectors }) => [numberOf(program), ...slots, "vectors", ...vectors]),
    ]);
    let all = compiled.get(device);
    if (!all) compiled.set(device, (all = new Map()));
    let compiling = all.get(key);
    if (!compiling) all.set(key, (compiling = compileNew(device, fuse(blocks, parts))));
    const pipeline = await compiling;
    if (!pipeline) return undefined;
    const own = { binding: countsSlot(parts), resource: countsOf(device, counts) };
    return { pipeline, entries: [...entries, own] };
  };
}

/**
 * Buffers with numbers of workgroups, one for all programs with the same: those of all layers have, and graphs are recorded again
 * and again. There are no more of them than steps have sizes.
 */
function createCounts(): (device: FusingDevice, counts: readonly number[]) => BufferEntry["resource"] {
  const made = new WeakMap<FusingDevice, Map<string, BufferEntry["resource"]>>();
  return (device, counts) => {
    let all = made.get(device);
    if (!all) made.set(device, (all = new Map()));
    const key = counts.join();
    let resource = all.get(key);
    if (!resource) all.set(key, (resource = writeCounts(device, counts)));
    return resource;
  };
}

function writeCounts(device: FusingDevice, counts: readonly number[]): BufferEntry["resource"] {
  const words = new Uint32Array(Math.ceil(counts.length / WORDS_OF_VECTOR) * WORDS_OF_VECTOR);
  words.set(counts);
  const size = words.byteLength;
  const buffer = device.createBuffer({ size, usage: COUNTS_USAGE });
  device.queue.writeBuffer(buffer, 0, new Uint8Array(words.buffer), 0, size);
  return { buffer, offset: 0, size };
}

async function compileNew(device: FusingDevice, code: string): Promise<FusingPipeline | undefined> {
  device.pushErrorScope("validation");
  const module = device.createShaderModule({ label: "fused", code });
  const problem = device.popErrorScope();
  try {
    if (await problem) return undefined;
    return await device.createComputePipelineAsync({
      layout: "auto",
      compute: { module, entryPoint: "main" },
    });
  } catch {
    return undefined;
  }
}
