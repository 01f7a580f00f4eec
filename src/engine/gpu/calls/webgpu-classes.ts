/** The part of WebGPU's classes, as Dawn exports them, that waits pass through. */

interface Class<Methods> {
  readonly prototype: Methods;
}

export interface WebGpuClasses {
  readonly GPUBuffer: Class<{ mapAsync: (...args: unknown[]) => Promise<unknown> }>;
  readonly GPUQueue: Class<{
    submit: (commands: readonly object[]) => void;
    writeBuffer: (buffer: object, at: number, data: Uint8Array, offset: number, size: number) => void;
    onSubmittedWorkDone: () => Promise<unknown>;
  }>;
}
