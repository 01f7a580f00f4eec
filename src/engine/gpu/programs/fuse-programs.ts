import { countsSlot, fuse, needsCounts } from "./fused-program.ts";
import { type BufferEntry, formOf, type Fusible, readFusible, type Step } from "./fusible.ts";
import type {
  Dispatch,
  FusingClasses,
  FusingDevice,
  FusingPass,
  FusingPipeline,
  PipelineDescriptor,
} from "./fusing-classes.ts";
import { shareBindings } from "./share-bindings.ts";

/** GPUBufferUsage.UNIFORM | COPY_DST */
const COUNTS_USAGE = 0x48;
const COUNTS_BYTES = 16;

/** Most dispatches that are run as one. */
const MOST_FUSED = 3;

/** Most sequences that are told apart for one dispatch: steps of one slot and of several, and ends of passes. */
const MOST_SEQUENCES = 4;

/** Dispatches that follow each other, and what is run in place of them. */
interface Sequence {
  readonly dispatches: readonly Dispatch[];
  /** Absent: they cannot be fused. */
  readonly fusion?: Fusion;
}

interface Fusion {
  readonly workgroups: number;
  /** Undefined until it is compiled, and for ever if it cannot be. */
  ready?: { readonly pipeline: object; readonly group: object };
}

/**
 * Runs some of llama.cpp's programs that follow each other as one, which saves the GPU a start and a wait each time: both products
 * and the activation of a feed-forward part, two products of the same input, the writes to both caches, and an addition and the
 * norm after it. Their code is that of llama.cpp, so they compute the same bits. They are compiled in the background, and until
 * that is done, or if it fails, llama.cpp's own run.
 */
export function fusePrograms({ GPUDevice, GPUComputePassEncoder }: FusingClasses): void {
  const codes = new WeakMap<object, string>();
  const fusibles = new WeakMap<object, Fusible>();
  const entriesOf = new WeakMap<
    object,
    { readonly device: FusingDevice; readonly entries: readonly BufferEntry[] }
  >();
  const compiled = new WeakMap<FusingDevice, Map<string, Promise<FusingPipeline | undefined>>>();
  /** By the group of the first dispatch. */
  const sequences = new WeakMap<object, Sequence[]>();
  /** Counts what has been learned, and what has been compiled. */
  let version = 0;
  /** What is run in place of a list, and of which version that is. */
  const resolved = new WeakMap<object, { readonly of: number; readonly list: readonly Dispatch[] }>();

  const { createShaderModule, createComputePipeline, createComputePipelineAsync, createBindGroup } =
    GPUDevice.prototype;
  GPUDevice.prototype.createShaderModule = function (this: FusingDevice, descriptor) {
    const made: object = Reflect.apply(createShaderModule, this, [descriptor]);
    codes.set(made, descriptor.code);
    return made;
  };
  const know = <Pipeline extends object>(made: Pipeline, { compute }: PipelineDescriptor): Pipeline => {
    const { module, constants } = compute;
    const fusible = constants === undefined ? readFusible(codes.get(module) ?? "") : undefined;
    if (fusible) fusibles.set(made, fusible);
    return made;
  };
  GPUDevice.prototype.createComputePipeline = function (this: FusingDevice, descriptor) {
    return know(Reflect.apply(createComputePipeline, this, [descriptor]), descriptor);
  };
  GPUDevice.prototype.createComputePipelineAsync = async function (this: FusingDevice, descriptor) {
    return know(await Reflect.apply(createComputePipelineAsync, this, [descriptor]), descriptor);
  };
  GPUDevice.prototype.createBindGroup = function (this: FusingDevice, descriptor) {
    const made: object = Reflect.apply(createBindGroup, this, [descriptor]);
    entriesOf.set(made, { device: this, entries: descriptor.entries });
    return made;
  };

  const stepOf = (dispatch: Dispatch | undefined): Step | undefined => {
    if (!dispatch) return undefined;
    const { x: workgroups, y, z = 1 } = dispatch;
    const fusible = fusibles.get(dispatch.pipeline);
    const bound = entriesOf.get(dispatch.group);
    return fusible && bound && y === 1 && z === 1
      ? { fusible, workgroups, entries: bound.entries }
      : undefined;
  };

  const compile = (device: FusingDevice, code: string): Promise<FusingPipeline | undefined> => {
    let own = compiled.get(device);
    if (!own) compiled.set(device, (own = new Map()));
    let pipeline = own.get(code);
    if (!pipeline) own.set(code, (pipeline = compileNew(device, code)));
    return pipeline;
  };

  /** @param next the dispatches from one on, as many as can be fused, or all that the pass still has */
  const prepare = (next: readonly Dispatch[]): Sequence => {
    const [first] = next;
    const device = first && entriesOf.get(first.group)?.device;
    const steps = next.map(stepOf);
    const found = formOf(steps);
    // Starting a program costs a processor nothing, but compiling one seconds.
    if (!found || !device || device.adapterInfo?.isFallbackAdapter === true) return { dispatches: next };
    const { form, count } = found;
    const parts = steps.slice(0, count).filter((step) => step !== undefined);
    const bound = shareBindings(parts);
    const [a = 0, b = 0] = parts.map(({ workgroups }) => workgroups);
    const workgroups = { beside: a + b, rows: a, chain: 1 }[form];
    const { maxStorageBuffersPerShaderStage = 0, maxComputeWorkgroupsPerDimension = 0 } = device.limits;
    if (!bound || bound.storage > maxStorageBuffersPerShaderStage) return { dispatches: next };
    if (workgroups > maxComputeWorkgroupsPerDimension) return { dispatches: next };
    const fusion: Fusion = { workgroups };
    const code = fuse(form, bound.parts, { rows: parts[0]?.fusible.rows ?? 0 });
    const complete = async (): Promise<void> => {
      const pipeline = await compile(device, code);
      if (!pipeline) return;
      const entries = needsCounts(form)
        ? [...bound.entries, countsEntry(device, countsSlot(bound.parts), [a, b])]
        : bound.entries;
      const layout = pipeline.getBindGroupLayout(0);
      fusion.ready = { pipeline, group: Reflect.apply(createBindGroup, device, [{ layout, entries }]) };
      version++;
    };
    // A device that is lost compiles nothing.
    complete().catch(() => {});
    return { dispatches: next.slice(0, count), fusion };
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
    if (known.length >= MOST_SEQUENCES) return undefined;
    const sequence = prepare(all.slice(at, at + MOST_FUSED));
    known.push(sequence);
    version++;
    return sequence;
  };

  const { setPipeline, setBindGroup, dispatchWorkgroups, end } = GPUComputePassEncoder.prototype;
  let open: FusingPass | undefined;
  let pipeline: object | undefined;
  let group: object | undefined;
  let pending: Dispatch[] = [];

  /** What is run in place of dispatches that follow each other. */
  const resolve = (all: readonly Dispatch[]): Dispatch[] => {
    const list: Dispatch[] = [];
    for (let at = 0; at < all.length;) {
      const sequence = sequenceAt(all, at);
      const { ready, workgroups = 0 } = sequence?.fusion ?? {};
      list.push(ready ? { ...ready, x: workgroups, y: 1 } : all[at]!);
      at += ready ? (sequence?.dispatches.length ?? 1) : 1;
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
  // A list that is run for each token is looked through only when there is something new to know.
  GPUComputePassEncoder.prototype.dispatchAll = function (this: FusingPass, all) {
    enter(this);
    run(this);
    let known = resolved.get(all);
    if (known?.of !== version) resolved.set(all, (known = { of: version, list: resolve(all) }));
    encode(this, known.list);
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
  if (!fusion && dispatches.length !== Math.min(MOST_FUSED, all.length - at)) return false;
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

function countsEntry(device: FusingDevice, binding: number, counts: readonly number[]): BufferEntry {
  const buffer = device.createBuffer({ size: COUNTS_BYTES, usage: COUNTS_USAGE });
  const words = new Uint32Array(COUNTS_BYTES / Uint32Array.BYTES_PER_ELEMENT);
  words.set(counts);
  device.queue.writeBuffer(buffer, 0, new Uint8Array(words.buffer), 0, COUNTS_BYTES);
  return { binding, resource: { buffer, offset: 0, size: COUNTS_BYTES } };
}

/** Compiles in the background; undefined if the driver or Dawn refuses the program. */
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
