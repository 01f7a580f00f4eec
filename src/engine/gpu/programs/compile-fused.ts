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
    let own = compiled.get(device);
    if (!own) compiled.set(device, (own = new Map()));
    let compiling = own.get(key);
    if (!compiling) own.set(key, (compiling = compileNew(device, fuse(blocks, parts))));
    const pipeline = await compiling;
    return pipeline && { pipeline, entries: [...entries, countsEntry(device, countsSlot(parts), counts)] };
  };
}

function countsEntry(device: FusingDevice, binding: number, counts: readonly number[]): BufferEntry {
  const words = new Uint32Array(Math.ceil(counts.length / WORDS_OF_VECTOR) * WORDS_OF_VECTOR);
  words.set(counts);
  const size = words.byteLength;
  const buffer = device.createBuffer({ size, usage: COUNTS_USAGE });
  device.queue.writeBuffer(buffer, 0, new Uint8Array(words.buffer), 0, size);
  return { binding, resource: { buffer, offset: 0, size } };
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
