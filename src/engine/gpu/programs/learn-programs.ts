import { type BufferEntry, type Fusible, readFusible, type Step } from "./fusible.ts";
import type { Dispatch, FusingClasses, FusingDevice, PipelineDescriptor } from "./fusing-classes.ts";
import { readProgram, type WgslProgram, writtenBindings } from "./wgsl-program.ts";

/** What is known of a program that is run. */
export interface KnownDispatch {
  readonly device: FusingDevice;
  readonly program: WgslProgram;
  /** Bindings that it writes. */
  readonly writes: readonly number[];
  readonly entries: readonly BufferEntry[];
}

interface LearnedPrograms {
  /** What of a dispatch can be fused; undefined: it cannot be. */
  readonly stepOf: (dispatch: Dispatch) => Step | undefined;
  /** Undefined where a program is written otherwise than llama.cpp's are. */
  readonly know: (dispatch: Dispatch) => KnownDispatch | undefined;
  readonly deviceOf: (dispatch: Dispatch) => FusingDevice | undefined;
}

/** Notes the WGSL of all programs and the buffers of all bind groups that are made from now on. */
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
  const keep = <Pipeline extends object>(made: Pipeline, { compute }: PipelineDescriptor): Pipeline => {
    const { module, constants } = compute;
    const code = constants === undefined ? codeOfModule.get(module) : undefined;
    if (code === undefined) return made;
    codeOf.set(made, code);
    const fusible = readFusible(code);
    if (fusible) fusibles.set(made, fusible);
    return made;
  };
  GPUDevice.prototype.createComputePipeline = function (this: FusingDevice, descriptor) {
    return keep(Reflect.apply(createComputePipeline, this, [descriptor]), descriptor);
  };
  GPUDevice.prototype.createComputePipelineAsync = async function (this: FusingDevice, descriptor) {
    return keep(await Reflect.apply(createComputePipelineAsync, this, [descriptor]), descriptor);
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
    know({ pipeline, group }) {
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
