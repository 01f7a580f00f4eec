import type { ProgramClasses } from "./size-workgroups.ts";
import { canBeFused, readProgram, type WgslProgram, writtenBindings } from "./wgsl-program.ts";

/** Properties of a program that determine with which others it can be fused. */
export interface Fusible {
  readonly kind: "product" | "activation" | "cache-write" | "addition" | "norm" | "rotation";
  readonly program: WgslProgram;
  /** Bindings that it writes, except atomics, which other programs may write at the same time. */
  readonly writes: readonly number[];
  /** Rows that a workgroup of a product computes; 0 for other kinds. */
  readonly rows: number;
}

/** Run of a fusible program: its workgroups, and the buffers that it binds. */
export interface Step {
  readonly fusible: Fusible;
  readonly workgroups: number;
  readonly entries: readonly BufferEntry[];
}

export interface BufferEntry {
  readonly binding: number;
  readonly resource: { readonly buffer: object; readonly offset?: number; readonly size?: number };
}

/** Recognizes the programs of llama.cpp that can be fused; undefined for the others. */
function readFusible(code: string): Fusible | undefined {
  const program = readProgram(code);
  if (!program || !canBeFused(program)) return undefined;
  const kind = kindOf(program);
  if (!kind) return undefined;
  // Only products with one column: with more of them, the rows of a workgroup are not consecutive.
  const rows = kind === "product" ? /array<array<f32, (\d+)>, 1>/.exec(program.code)?.[1] : "0";
  return rows === undefined
    ? undefined
    : { kind, program, writes: writtenBindings(program), rows: Number(rows) };
}

function kindOf({ names, bindings, code }: WgslProgram): Fusible["kind"] | undefined {
  const has = (...all: readonly string[]): boolean => all.every((name) => names.includes(name));
  const storage = bindings.filter(({ space }) => space.startsWith("storage")).length;
  if (has("accumulate_vec_dot")) return storage === 3 ? "product" : undefined;
  if (has("a_value", "b_value")) return storage === 3 ? "activation" : undefined;
  if (has("error", "idx")) return storage === 4 ? "cache-write" : undefined;
  if (has("src1_index") && /return a \+ b;/.test(code)) return "addition";
  if (has("rn_src", "mul_src")) return "norm";
  return has("rope_yarn") ? "rotation" : undefined;
}

export function entryAt({ entries }: Step, binding: number): BufferEntry | undefined {
  return entries.find((entry) => entry.binding === binding);
}

/** Buffers that a step writes. */
export function writtenBy(step: Step): BufferEntry[] {
  return step.entries.filter(({ binding }) => step.fusible.writes.includes(binding));
}

/** True if one step writes a buffer that the other reads or writes. */
export function areInOrder(a: Step, b: Step): boolean {
  const touches = (writer: Step, other: Step): boolean =>
    writtenBy(writer).some((written) => other.entries.some((entry) => overlap(written, entry)));
  return touches(a, b) || touches(b, a);
}

export function isSame({ resource: a }: BufferEntry, { resource: b }: BufferEntry): boolean {
  return a.buffer === b.buffer && (a.offset ?? 0) === (b.offset ?? 0) && a.size === b.size;
}

export function overlap({ resource: a }: BufferEntry, { resource: b }: BufferEntry): boolean {
  const [from, other] = [a.offset ?? 0, b.offset ?? 0];
  return a.buffer === b.buffer && from < other + (b.size ?? Infinity) && other < from + (a.size ?? Infinity);
}

export interface FusingPipeline {
  getBindGroupLayout(index: number): object;
}

export interface FusingDevice {
  readonly adapterInfo?: { readonly isFallbackAdapter?: boolean };
  readonly limits: Readonly<Record<string, number>>;
  readonly queue: {
    writeBuffer(buffer: object, at: number, data: Uint8Array, from: number, size: number): void;
  };
  createShaderModule: (descriptor: { readonly label?: string; readonly code: string }) => object;
  createBuffer: (descriptor: { readonly size: number; readonly usage: number }) => object;
  createBindGroup: (descriptor: {
    readonly layout: object;
    readonly entries: readonly BufferEntry[];
  }) => object;
  createComputePipeline: (descriptor: PipelineDescriptor) => FusingPipeline;
  createComputePipelineAsync: (descriptor: PipelineDescriptor) => Promise<FusingPipeline>;
  pushErrorScope: (filter: "validation") => void;
  popErrorScope: () => Promise<object | null>;
  /** Our addition: dispatches to run instead of a constant list that is run repeatedly. */
  fusedDispatches?: (list: readonly Dispatch[]) => readonly Dispatch[];
}

interface PipelineDescriptor {
  readonly label?: string;
  readonly layout: unknown;
  readonly compute: { readonly module: object; readonly entryPoint?: string; readonly constants?: object };
}

export interface Dispatch {
  readonly pipeline: FusingPipeline;
  readonly group: object;
  readonly x: number;
  readonly y: number;
  readonly z?: number;
}

export interface FusingPass {
  setPipeline: (pipeline: FusingPipeline) => void;
  setBindGroup: (index: number, group: object, ...offsets: unknown[]) => void;
  dispatchWorkgroups: (x: number, y?: number, z?: number) => void;
  end: () => void;
  /** Our addition: runs a list unchanged. */
  dispatchAll?: (list: readonly Dispatch[]) => void;
}

/** Part of WebGPU's classes that runs programs. */
export interface FusingClasses extends ProgramClasses {
  readonly GPUDevice: { readonly prototype: FusingDevice & ProgramClasses["GPUDevice"]["prototype"] };
  readonly GPUComputePassEncoder: { readonly prototype: FusingPass };
}

export interface KnownDispatch {
  readonly device: FusingDevice;
  readonly program: WgslProgram;
  readonly writes: readonly number[];
  readonly entries: readonly BufferEntry[];
}

interface LearnedPrograms {
  /** Returns the dispatch as a step; undefined if it cannot be fused. */
  readonly stepOf: (dispatch: Dispatch) => Step | undefined;
  /** Returns undefined for a program that is not written like those of llama.cpp. */
  readonly describeDispatch: (dispatch: Dispatch) => KnownDispatch | undefined;
  readonly deviceOf: (dispatch: Dispatch) => FusingDevice | undefined;
}

/** Records the WGSL of all programs and the buffers of all bind groups that are made from now on. */
export function learnPrograms({ GPUDevice }: FusingClasses): LearnedPrograms {
  const codeOfModule = new WeakMap<object, string>();
  const codeOf = new WeakMap<object, string>();
  const fusibles = new WeakMap<object, Fusible>();
  const programs = new WeakMap<object, Pick<KnownDispatch, "program" | "writes">>();
  const groups = new WeakMap<object, Pick<KnownDispatch, "device" | "entries">>();

  const { createShaderModule, createComputePipeline, createComputePipelineAsync, createBindGroup } =
    GPUDevice.prototype;
  GPUDevice.prototype.createShaderModule = function (this: FusingDevice, descriptor) {
    const made: object = Reflect.apply(createShaderModule, this, [descriptor]);
    codeOfModule.set(made, descriptor.code);
    return made;
  };
  const rememberCode = <Pipeline extends object>(
    made: Pipeline,
    { compute }: PipelineDescriptor,
  ): Pipeline => {
    const { module, constants } = compute;
    const code = constants === undefined ? codeOfModule.get(module) : undefined;
    if (code === undefined) return made;
    codeOf.set(made, code);
    const fusible = readFusible(code);
    if (fusible) fusibles.set(made, fusible);
    return made;
  };
  GPUDevice.prototype.createComputePipeline = function (this: FusingDevice, descriptor) {
    return rememberCode(Reflect.apply(createComputePipeline, this, [descriptor]), descriptor);
  };
  GPUDevice.prototype.createComputePipelineAsync = async function (this: FusingDevice, descriptor) {
    return rememberCode(await Reflect.apply(createComputePipelineAsync, this, [descriptor]), descriptor);
  };
  GPUDevice.prototype.createBindGroup = function (this: FusingDevice, descriptor) {
    const made: object = Reflect.apply(createBindGroup, this, [descriptor]);
    groups.set(made, { device: this, entries: descriptor.entries });
    return made;
  };

  return {
    stepOf({ pipeline, group, x: workgroups, y, z = 1 }) {
      const fusible = fusibles.get(pipeline);
      const bound = groups.get(group);
      return fusible && bound && y === 1 && z === 1
        ? { fusible, workgroups, entries: bound.entries }
        : undefined;
    },
    describeDispatch({ pipeline, group }) {
      let known = programs.get(pipeline);
      if (!known) {
        const program = readProgram(codeOf.get(pipeline) ?? "");
        if (!program) return undefined;
        programs.set(pipeline, (known = { program, writes: writtenBindings(program) }));
      }
      const bound = groups.get(group);
      return bound && { ...known, ...bound };
    },
    deviceOf: ({ group }) => groups.get(group)?.device,
  };
}
