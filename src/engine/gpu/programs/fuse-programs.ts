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
import { MAX_PLANNED_STEPS, type PackedProgram, packPlan, planSteps } from "./plan-steps.ts";
import { createScanSharing } from "./share-scans.ts";
import { countsSlot, fuse } from "./wgsl-program.ts";

/** Maximum of different sequences that start with one dispatch: steps of one slot and of several, and ends of passes. */
const MAX_SEQUENCES = 4;

/** Consecutive dispatches, and the fusion that replaces them. */
interface Sequence {
  readonly dispatches: readonly Dispatch[];
  /** Absent: the dispatches cannot be fused. */
  readonly fusion?: Fusion;
}

interface Fusion {
  state: "compiling" | "ready" | "refused";
  /** Dispatches to run when they are compiled. */
  list: readonly Dispatch[];
}

/**
 * Fuses some consecutive programs of llama.cpp, which saves the GPU a start and a wait each time: both products and the
 * activation of a feed-forward block; the products of queries, keys and values with their biases; the rotation of queries
 * and keys and the writes to the KV cache; an addition and the norm after it. Their code is that of llama.cpp, so they
 * compute the same bits. They are compiled in the background; until then, or if that fails, llama.cpp's programs run.
 */
export function fusePrograms(classes: FusingClasses): void {
  const { GPUDevice, GPUComputePassEncoder } = classes;
  const { stepOf, describeDispatch, deviceOf } = learnPrograms(classes);
  const shareScans = createScanSharing(describeDispatch);
  const compile = createFusedCompiler();
  /** Sequences by the bind group of their first dispatch. */
  const sequences = new WeakMap<object, Sequence[]>();
  /** Incremented whenever the result of resolve() may change: with a new sequence or a compiled fusion. */
  let version = 0;
  /** Fused dispatches of a list, and the version for which they were resolved. */
  const resolved = new WeakMap<object, { readonly of: number; readonly list: readonly Dispatch[] }>();

  /** @param next consecutive dispatches: as many as can be fused, or the rest of the pass */
  const prepare = (next: readonly Dispatch[]): Sequence => {
    const [first] = next;
    const device = first && deviceOf(first);
    // On a software adapter, starting a program costs nothing, but compiling one takes seconds.
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
    // Compilation fails when the device is lost.
    compileAll().catch(() => {});
    return { dispatches: next.slice(0, plan.steps.length), fusion };
  };
  /** Dispatch for a program of a plan; llama.cpp's own dispatch if the program is not fused. */
  const dispatchOf = async (
    device: FusingDevice,
    program: PackedProgram,
    dispatches: readonly Dispatch[],
    steps: readonly Step[],
  ): Promise<Dispatch | undefined> => {
    const [only = 0, ...others] = program.steps;
    const unfused = dispatches[only];
    if (unfused && others.length === 0 && stepOf(unfused)?.entries === steps[only]?.entries) return unfused;
    const { pipeline, entries } = (await compile(device, program)) ?? {};
    if (!pipeline || !entries) return undefined;
    // An invalid bind group would make all later answers fail.
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
  /** Finds or prepares the sequence that starts at a dispatch of a pass. */
  const sequenceAt = (all: readonly Dispatch[], at: number): Sequence | undefined => {
    const first = all[at];
    if (!first) return undefined;
    const known = sequences.get(first.group);
    if (!known) {
      // The group may be used only once: without our kernels, each program of each token has a group of its own.
      sequences.set(first.group, []);
      version++;
      return undefined;
    }
    for (const sequence of known) if (matchesAt(sequence, all, at)) return sequence;
    if (known.length >= MAX_SEQUENCES) return undefined;
    const sequence = prepare(all.slice(at, at + MAX_PLANNED_STEPS));
    known.push(sequence);
    version++;
    return sequence;
  };

  const { setPipeline, setBindGroup, dispatchWorkgroups, end } = GPUComputePassEncoder.prototype;
  let open: FusingPass | undefined;
  let pipeline: FusingPipeline | undefined;
  let group: object | undefined;
  let pending: Dispatch[] = [];

  /** Replaces dispatches by compiled fusions. */
  const resolve = (all: readonly Dispatch[]): Dispatch[] => {
    const list: Dispatch[] = [];
    for (let at = 0; at < all.length;) {
      const { dispatches, fusion } = sequenceAt(all, at) ?? {};
      // While a fusion is being compiled, no sequence may start in its middle.
      const isWhole = fusion !== undefined && fusion.state !== "refused";
      const unfused = all.slice(at, at + (isWhole ? (dispatches?.length ?? 1) : 1));
      list.push(...(fusion?.state === "ready" ? fusion.list : unfused));
      at += unfused.length;
    }
    return list;
  };
  const encode = (pass: FusingPass, list: readonly Dispatch[]): void => {
    let set: object | undefined;
    for (const { pipeline: next, group: bound, x, y, z = 1 } of list) {
      if (next !== set) setPipeline.call(pass, (set = next));
      setBindGroup.call(pass, 0, bound);
      // Each argument costs time in Dawn's addon.
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
  // A list that is run for each token is resolved again only when the result may have changed.
  GPUDevice.prototype.fusedDispatches = function (this: FusingDevice, all) {
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

/** True if a sequence starts here. A sequence without fusion also fixes how many dispatches follow. */
function matchesAt({ dispatches, fusion }: Sequence, all: readonly Dispatch[], at: number): boolean {
  if (!fusion && dispatches.length !== Math.min(MAX_PLANNED_STEPS, all.length - at)) return false;
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
  /**
   * Uniform buffers with numbers of workgroups. Programs with the same numbers share one, because all layers have the same
   * and graphs are recorded often. Their number is bounded by the number of different step sizes.
   */
  const uniforms = new WeakMap<FusingDevice, Map<string, BufferEntry["resource"]>>();
  const numbers = new WeakMap<object, number>();
  let last = 0;
  const numberOf = (program: object): number => cached(numbers, program, () => ++last);
  return async (device, { blocks, parts, entries, counts }) => {
    // Generating the code takes longer than a token may; all blocks of a model share it.
    const key = JSON.stringify([
      blocks,
      parts.map(({ program, slots, vectors }) => [numberOf(program), ...slots, "vectors", ...vectors]),
    ]);
    const known = cached(compiled, device, () => new Map());
    const pipeline = await cached(known, key, () => compileNew(device, fuse(blocks, parts)));
    if (!pipeline) return undefined;
    const made = cached(uniforms, device, () => new Map());
    const resource = cached(made, counts.join(), () => writeCounts(device, counts));
    return { pipeline, entries: [...entries, { binding: countsSlot(parts), resource }] };
  };
}

interface Cache<Key, Value> {
  get(key: Key): Value | undefined;
  set(key: Key, value: Value): unknown;
}

function cached<Key, Value>(cache: Cache<Key, Value>, key: Key, make: () => Value): Value {
  let value = cache.get(key);
  if (value === undefined) cache.set(key, (value = make()));
  return value;
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
