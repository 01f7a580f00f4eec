/** The part of WebGPU through which the programs of a graph pass, in Dawn as in a browser. */

export interface GpuBuffer {
  destroy(): void;
}

export interface GpuPipeline {
  getBindGroupLayout(index: number): object;
}

/** A program that is run: it starts so many workgroups, in two dimensions. */
export interface GpuDispatch {
  readonly pipeline: GpuPipeline;
  readonly group: object;
  readonly x: number;
  readonly y: number;
}

export interface GpuPass {
  setPipeline(pipeline: object): void;
  setBindGroup(index: number, group: object): void;
  dispatchWorkgroups(x: number, y: number, z: number): void;
  /** Of ours, where programs are fused: runs a list as it is. */
  dispatchAll?(list: readonly GpuDispatch[]): void;
  end(): void;
}

export interface GpuDevice {
  readonly queue: {
    writeBuffer(buffer: GpuBuffer, at: number, data: Uint8Array, offset: number, size: number): void;
    submit(commands: readonly object[]): void;
  };
  readonly lost: Promise<unknown>;
  createBuffer(descriptor: { readonly size: number; readonly usage: number }): GpuBuffer;
  createBindGroup(descriptor: { readonly layout: object; readonly entries: readonly object[] }): object;
  createCommandEncoder(): { beginComputePass(): GpuPass; finish(): object };
  /** Of ours, where programs are fused: what is to run in place of a list that never changes, and that will be run again. */
  inPlaceOf?(list: readonly GpuDispatch[]): readonly GpuDispatch[];
  addEventListener(event: "uncapturederror", listener: () => void): void;
}
