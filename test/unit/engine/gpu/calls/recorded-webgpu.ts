import type { WebGpuClasses } from "../../../../../src/engine/gpu/calls/open-gpu.ts";

/** Fake classes of WebGPU that only record their calls. */
export interface RecordedWebGpu extends WebGpuClasses {
  /** All calls in order, with their arguments. */
  readonly calls: (readonly [string, ...unknown[]])[];
  /** Resolves all pending waits for work. */
  finishWork(): void;
}

function nothing(): void {}

export function recordWebGpu(): RecordedWebGpu {
  const calls: (readonly [string, ...unknown[]])[] = [];
  const waiting: (() => void)[] = [];
  const record =
    <Result>(name: string, result: () => Result) =>
    (...args: unknown[]): Result => {
      // Copies the data, like Dawn, because the caller reuses the memory.
      calls.push([name, ...args.map((arg) => (arg instanceof Uint8Array ? Uint8Array.from(arg) : arg))]);
      return result();
    };
  const wait = (): Promise<void> => new Promise((resolve) => waiting.push(resolve));
  return {
    calls,
    finishWork: () => waiting.splice(0).forEach((resolve) => resolve()),
    GPUBuffer: { prototype: { mapAsync: record("mapAsync", wait) } },
    GPUQueue: {
      prototype: {
        submit: record("submit", nothing),
        writeBuffer: record("writeBuffer", nothing),
        onSubmittedWorkDone: record("onSubmittedWorkDone", wait),
      },
    },
  };
}
