import type { BufferEntry } from "./fusible.ts";
import type { ProgramClasses } from "./size-workgroups.ts";

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
  /** Of ours: what is to run in place of a list that never changes, and that will be run again. */
  inPlaceOf?: (list: readonly Dispatch[]) => readonly Dispatch[];
}

export interface PipelineDescriptor {
  readonly label?: string;
  readonly layout: unknown;
  readonly compute: { readonly module: object; readonly entryPoint?: string; readonly constants?: object };
}

/** A program that is run. */
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
  /** Of ours: runs a list as it is. */
  dispatchAll?: (list: readonly Dispatch[]) => void;
}

/** The part of WebGPU's classes through which programs are run. */
export interface FusingClasses extends ProgramClasses {
  readonly GPUDevice: { readonly prototype: FusingDevice & ProgramClasses["GPUDevice"]["prototype"] };
  readonly GPUComputePassEncoder: { readonly prototype: FusingPass };
}
