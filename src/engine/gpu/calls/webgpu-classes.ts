/** The part of WebGPU's classes, as Dawn exports them, through which llama.cpp's work passes. */

interface GpuBuffer {
  mapAsync: (...args: unknown[]) => Promise<unknown>;
  destroy: () => void;
}

interface BufferDescriptor {
  readonly size: number;
  /** Bits of GPUBufferUsage. */
  readonly usage: number;
  readonly mappedAtCreation?: boolean;
}

interface BindGroupEntry {
  readonly binding: number;
  readonly resource: object & {
    readonly buffer?: object;
    readonly offset?: number | undefined;
    readonly size?: number | undefined;
  };
}

export interface BindGroupDescriptor {
  readonly layout: object;
  readonly entries: readonly BindGroupEntry[];
}

interface Class<Methods> {
  readonly prototype: Methods;
}

export interface WebGpuClasses {
  readonly GPUBuffer: Class<GpuBuffer>;
  readonly GPUDevice: Class<{
    createBuffer: (descriptor: BufferDescriptor) => object;
    createBindGroup: (descriptor: BindGroupDescriptor) => object;
  }>;
  readonly GPUComputePipeline: Class<{ getBindGroupLayout: (index: number) => object }>;
  readonly GPUCommandEncoder: Class<{
    copyBufferToBuffer: (...args: unknown[]) => void;
    clearBuffer: (buffer: object, ...range: unknown[]) => void;
  }>;
  readonly GPUQueue: Class<{
    submit: (commands: readonly object[]) => void;
    writeBuffer: (buffer: object, at: number, data: Uint8Array, offset: number, size: number) => void;
    onSubmittedWorkDone: () => Promise<unknown>;
  }>;
}
