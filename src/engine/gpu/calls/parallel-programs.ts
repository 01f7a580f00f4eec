interface CompilingDevice {
  createComputePipeline(descriptor: object): object;
  createComputePipelineAsync(descriptor: object): Promise<object>;
}

export interface ParallelPrograms {
  /** True while programs are compiled in parallel, so that none can run. */
  areCompiling(): boolean;
  /** Starts parallel compilation; called when the kernels begin to describe programs to the script. */
  begin(): void;
  /** Compiles a program, or starts compiling it and returns a placeholder. */
  compile(device: CompilingDevice, descriptor: object): object;
  /** Returns a program that must run at once; compiles it synchronously if it is not ready. */
  ready(handle: number): object;
  /** Waits for all compilations; from then on programs run, and new ones are compiled synchronously. */
  settle(): Promise<void>;
  /**
   * Called when a call of llama.cpp begins or ends.
   * @param isRehearsal true for a warm-up: its programs are compiled in parallel, until a call that is none
   */
  rehearse(isRehearsal: boolean): Promise<void>;
}

/**
 * Compiles programs in parallel while a model loads. llama.cpp then computes a graph only to have its programs compiled,
 * one after the other, and discards the result. Here the graph does not run, and Dawn or the browser compiles all programs
 * at once. The engine's warm-up does the same with a request, which has some other programs.
 *
 * Part of llama.cpp's script in a worker, which gets this function as text: it must not refer to anything outside of it.
 * @param objects WebGPU's objects by their handles
 */
export function openParallelPrograms(objects: Record<number, object>): ParallelPrograms {
  interface Compiling {
    readonly device: CompilingDevice;
    readonly descriptor: object;
    readonly result: Promise<object | undefined>;
  }
  const compiling = new Map<object, Compiling>();
  let state: "before" | "compiling" | "after" = "before";

  const settle = async (): Promise<void> => {
    if (state !== "compiling") return;
    await Promise.all(Array.from(compiling.values(), ({ result }) => result));
    for (const [handle, object] of Object.entries(objects)) {
      const program = compiling.get(object);
      if (!program) continue;
      const { device, descriptor, result } = program;
      objects[Number(handle)] = (await result) ?? device.createComputePipeline(descriptor);
    }
    compiling.clear();
    state = "after";
  };

  return {
    areCompiling: () => state === "compiling",
    begin() {
      if (state === "before") state = "compiling";
    },
    compile(device, descriptor) {
      if (state !== "compiling") return device.createComputePipeline(descriptor);
      const placeholder = {};
      // An invalid program fails again when it is compiled synchronously.
      const result = device.createComputePipelineAsync(descriptor).catch(() => undefined);
      compiling.set(placeholder, { device, descriptor, result });
      return placeholder;
    },
    ready(handle) {
      const found = objects[handle]!;
      const program = compiling.get(found);
      if (!program) return found;
      return (objects[handle] = program.device.createComputePipeline(program.descriptor));
    },
    settle,
    async rehearse(isRehearsal) {
      if (!isRehearsal) await settle();
      else if (state === "after") state = "compiling";
    },
  };
}
