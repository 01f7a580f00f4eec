import {
  type BufferEntry,
  type Dispatch,
  type FusingClasses,
  type FusingDevice,
  type FusingPass,
  type FusingPipeline,
  learnPrograms,
  type Step,
} from "./fusible.ts";
import { MAX_PLANNED, type PackedProgram, packPlan, planSteps } from "./plan-steps.ts";
import { createScanSharing } from "./share-scans.ts";
import { countsSlot, fuse } from "./wgsl-program.ts";

/** Most sequences that are told apart for one dispatch: steps of one slot and of several, and ends of passes. */
const MAX_SEQUENCES = 4;

/** Dispatches that follow each other, and what is run in place of them. */
interface Sequence {
  readonly dispatches: readonly Dispatch[];
  /** Absent: they cannot be fused. */
  readonly fusion?: Fusion;
}

interface Fusion {
  state: "compiling" | "ready" | "refused";
  /** What is run when it is compiled. */
  list: readonly Dispatch[];
}

/**
 * Runs some of llama.cpp's programs that follow each other in fewer, which saves the GPU a start and a wait each time: both products
 * and the activation of a feed-forward part; the products of queries, keys and values with their biases; what rotates queries
 * and keys and writes keys and values to the cache; an addition and the norm after it. Their code is that of llama.cpp, so
 * they compute the same bits. They are compiled in the background, and until that is done, or if it fails, llama.cpp's own run.
 */
export function fusePrograms(classes: FusingClasses): void {
  const { GPUDevice, GPUComputePassEncoder } = classes;
  const { stepOf, know, deviceOf } = learnPrograms(classes);
  const shareScans = createScanSharing(know);
  const compile = createFusedCompiler();
  /** By the group of the first dispatch. */
  const sequences = new WeakMap<object, Sequence[]>();
  /** Counts what has been learned, and what has been compiled. */
  let version = 0;
  /** What is run in place of a list, and of which version that is. */
  const resolved = new WeakMap<object, { readonly of: number; readonly list: readonly Dispatch[] }>();

  /** @param next the dispatches from one on, as many as can be fused, or all that the pass still has */
  const prepare = (next: readonly Dispatch[]): Sequence => {
    const [first] = next;
    const device = first && deviceOf(first);
    // Starting a program costs a processor nothing, but compiling one seconds.
    if (!device || device.adapterInfo?.isFallbackAdapter === true) return { dispatches: next };
    const plan = planSteps(next.map(stepOf));
    const programs = plan && packPlan(plan, limitsOf(device));
    if (!programs) return { dispatches: next };
    const fusion: Fusion = { state: "compiling", list: [] };
    const compileAll = async (): Promise<void> => {
      const list = await Promise.all(
        programs.map(async (program) => await dispatchOf(device, program, next, plan.steps)),
      );
      fusion.list = list.filter((each) => each !== undefined);
      fusion.state = fusion.list.length === programs.length ? "ready" : "refused";
      version++;
    };
    // A device that is lost compiles nothing.
    compileAll().catch(() => {});
    return { dispatches: next.slice(0, plan.steps.length), fusion };
  };
  /** What runs a program of a plan: one of llama.cpp's that stands alone as it is. */
  const dispatchOf = async (
    device: FusingDevice,
    program: PackedProgram,
    dispatches: readonly Dispatch[],
    steps: readonly Step[],
  ): Promise<Dispatch | undefined> => {
    const [only = 0, ...others] = program.steps;
    const own = dispatches[only];
    if (own && others.length === 0 && stepOf(own)?.entries === steps[only]?.entries) return own;
    const { pipeline, entries } = (await compile(device, program)) ?? {};
    if (!pipeline || !entries) return undefined;
    // One that is not valid would fail each answer from now on.
    device.pushErrorScope("validation");
    let problem: ReturnType<typeof device.popErrorScope>;
    let group: Dispatch["group"];
    try {
      group = device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries });
    } finally {
      problem = device.popErrorScope();
    }
    if (await problem) return undefined;
    return { pipeline, group, x: program.workgroups, y: 1 };
  };
  /** What begins at one of the dispatches of a pass. */
  const sequenceAt = (all: readonly Dispatch[], at: number): Sequence | undefined => {
    const first = all[at];
    if (!first) return undefined;
    const known = sequences.get(first.group);
    if (!known) {
      // It may be used once only: without our kernels, each program of each token has a group of its own.
      sequences.set(first.group, []);
      version++;
      return undefined;
    }
    for (const sequence of known) if (isAhead(sequence, all, at)) return sequence;
    if (known.length >= MAX_SEQUENCES) return undefined;
    const sequence = prepare(all.slice(at, at + MAX_PLANNED));
    known.push(sequence);
    version++;
    return sequence;
  };

  const { setPipeline, setBindGroup, dispatchWorkgroups, end } = GPUComputePassEncoder.prototype;
  let open: FusingPass | undefined;
  let pipeline: FusingPipeline | undefined;
  let group: object | undefined;
  let pending: Dispatch[] = [];

  /** What is run in place of dispatches that follow each other. */
  const resolve = (all: readonly Dispatch[]): Dispatch[] => {
    const list: Dispatch[] = [];
    for (let at = 0; at < all.length;) {
      const { dispatches, fusion } = sequenceAt(all, at) ?? {};
      // While it is compiled, nothing is looked for in its middle.
      const isWhole = fusion !== undefined && fusion.state !== "refused";
      const own = all.slice(at, at + (isWhole ? (dispatches?.length ?? 1) : 1));
      list.push(...(fusion?.state === "ready" ? fusion.list : own));
      at += own.length;
    }
    return list;
  };
  const encode = (pass: FusingPass, list: readonly Dispatch[]): void => {
    let set: object | undefined;
    for (const { pipeline: next, group: bound, x, y, z = 1 } of list) {
      if (next !== set) setPipeline.call(pass, (set = next));
      setBindGroup.call(pass, 0, bound);
      // Each number that is given takes Dawn's addon a while.
      if (y === 1 && z === 1) dispatchWorkgroups.call(pass, x);
      else dispatchWorkgroups.call(pass, x, y, z);
    }
  };
  const run = (pass: FusingPass): void => {
    const all = pending;
    pending = [];
    encode(pass, resolve(all));
  };
  const enter = (pass: FusingPass): void => {
    if (open === pass) return;
    if (open) run(open);
    open = pass;
    pipeline = group = undefined;
  };

  GPUComputePassEncoder.prototype.setPipeline = function (this: FusingPass, given) {
    enter(this);
    pipeline = given;
  };
  GPUComputePassEncoder.prototype.setBindGroup = function (this: FusingPass, index, given, ...offsets) {
    if (index !== 0 || offsets.length > 0) throw new Error("llama.cpp binds one group, without offsets");
    enter(this);
    group = given;
  };
  GPUComputePassEncoder.prototype.dispatchWorkgroups = function (this: FusingPass, x, y = 1, z = 1) {
    enter(this);
    if (pipeline && group) pending.push({ pipeline, group, x, y, z });
  };
  GPUComputePassEncoder.prototype.dispatchAll = function (this: FusingPass, all) {
    enter(this);
    run(this);
    encode(this, all);
  };
  // A list that is run for each token is looked through only when there is something new to know.
  GPUDevice.prototype.inPlaceOf = function (this: FusingDevice, all) {
    let known = resolved.get(all);
    if (known?.of !== version) resolved.set(all, (known = { of: version, list: shareScans(resolve(all)) }));
    return known.list;
  };
  GPUComputePassEncoder.prototype.end = function (this: FusingPass) {
    enter(this);
    run(this);
    open = undefined;
    Reflect.apply(end, this, []);
  };
}

/** A sequence comes next; one that cannot be fused is known for the dispatches after it as well. */
function isAhead({ dispatches, fusion }: Sequence, all: readonly Dispatch[], at: number): boolean {
  if (!fusion && dispatches.length !== Math.min(MAX_PLANNED, all.length - at)) return false;
  for (let index = 0; index < dispatches.length; index++) {
    const expected = dispatches[index];
    const found = all[at + index];
    if (!expected || !found || expected.group !== found.group || expected.pipeline !== found.pipeline)
      return false;
    if (expected.x !== found.x || expected.y !== found.y || (expected.z ?? 1) !== (found.z ?? 1))
      return false;
  }
  return true;
}

function limitsOf({ limits }: FusingDevice): { storageBuffers: number; workgroups: number } {
  const { maxStorageBuffersPerShaderStage = 0, maxComputeWorkgroupsPerDimension = 0 } = limits;
  return { storageBuffers: maxStorageBuffersPerShaderStage, workgroups: maxComputeWorkgroupsPerDimension };
}

/** GPUBufferUsage.UNIFORM | COPY_DST */
const COUNTS_USAGE = 0x48;
const WORDS_OF_VECTOR = 4;

interface CompiledProgram {
  readonly pipeline: FusingPipeline;
  readonly entries: readonly BufferEntry[];
}

type CompileFused = (device: FusingDevice, program: PackedProgram) => Promise<CompiledProgram | undefined>;

/** Compiles fused programs in the background, each once for a device; undefined if the driver or Dawn refuses it. */
function createFusedCompiler(): CompileFused {
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
