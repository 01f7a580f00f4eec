interface CompilingDevice {
  createComputePipeline(descriptor: object): object;
  createComputePipelineAsync(descriptor: object): Promise<object>;
}

export interface ParallelPrograms {
  /** True while programs are compiled beside each other, and none can run. */
  areCompiling(): boolean;
  /** The kernels describe programs to the script: what is compiled from now on is not waited for. */
  begin(): void;
  /** Compiles a program, or begins to. */
  compile(device: CompilingDevice, descriptor: object): object;
  /** A program that is to run at once, compiled again where that is not done. */
  ready(handle: number): object;
  /** Waits for all that is being compiled; from then on programs run, and each is compiled when it is asked for. */
  settle(): Promise<void>;
  /**
   * A call of llama.cpp begins, or has ended.
   * @param isRehearsal what it asks for is compiled as while a model loads, until one begins or ends that is none
   */
  rehearse(isRehearsal: boolean): Promise<void>;
}

/**
 * Compiles programs beside each other while a model loads. llama.cpp computes a graph then to have them compiled, one after the
 * other, and throws away what comes out. So none of it runs, and Dawn or the browser compiles all of its programs at once. The
 * engine's warm-up does the same with a request, whose programs are others in part.
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
      const place = {};
      // What is wrong with a program is said when it is compiled again.
      const result = device.createComputePipelineAsync(descriptor).catch(() => undefined);
      compiling.set(place, { device, descriptor, result });
      return place;
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
