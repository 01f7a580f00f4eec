import type { WebGpuClasses } from "../../../../../src/engine/gpu/calls/open-gpu.ts";

/** WebGPU's classes with nothing behind them but a record of what they were asked for. */
export interface RecordedWebGpu extends WebGpuClasses {
  /** Every call that arrived, in order, with what it was given. */
  readonly calls: (readonly [string, ...unknown[]])[];
  /** Ends the waits for work that have begun. */
  finishWork(): void;
}

function nothing(): void {}

export function recordWebGpu(): RecordedWebGpu {
  const calls: (readonly [string, ...unknown[]])[] = [];
  const waiting: (() => void)[] = [];
  const record =
    <Result>(name: string, result: () => Result) =>
    (...args: unknown[]): Result => {
      // What is written is copied, as Dawn does: the caller goes on to use the memory.
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
