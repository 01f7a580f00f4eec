export interface RecordedProgram {
  /** Its pipeline and buffers, encoded as in the stream. */
  readonly key: Uint32Array;
  readonly pipeline: GpuPipeline;
}

interface RecordingOptions {
  readonly device: () => GpuDevice;
  /** Bytes for the parameters of one program. */
  readonly slotBytes: number;
  readonly usage: number;
  /** Makes a bind group with parameters from a slot of a buffer. */
  readonly makeGroup: (program: RecordedProgram, parameters: GpuBuffer, slot: number) => object;
}

interface GraphRecordings {
  /** True while a graph is recorded that can be replayed. */
  readonly isRecording: boolean;
  /** Starts a recording, which replaces the one of the same number. */
  begin(which: number): void;
  /** Adds a program, with its workgroups in two dimensions. */
  add(program: RecordedProgram, x: number, y: number, parameters: Uint32Array): void;
  /** Invalidates the current recording, because of an operation that cannot be recorded. */
  spoil(): void;
  /** Ends the recording. Returns true if it can be replayed. */
  end(which: number): boolean;
  /** Submits a recorded graph. Returns false if there is no such recording. */
  replay(which: number): boolean;
  forget(): void;
}

/**
 * Records complete graphs and replays them in few submissions, the first of them small so that the GPU starts early.
 *
 * Part of llama.cpp's script in a worker, which gets this function as text: it must not refer to anything outside of it.
 */
export function openGraphRecordings(options: RecordingOptions): GraphRecordings {
  const { slotBytes } = options;
  const WORD = 4;
  /** Programs of a replay's first submission, growth factor of the next ones, and programs of the largest. */
  const FIRST_SUBMISSION = 32;
  const GROWTH = 4;
  const LARGEST_SUBMISSION = 256;

  interface Repeat {
    readonly parameters: GpuBuffer;
    readonly list: readonly GpuDispatch[];
    /** Dispatches to run instead of the list, after fusion, and their submissions. */
    runs: readonly GpuDispatch[] | undefined;
    submissions: (readonly GpuDispatch[])[];
  }
  interface Recording {
    readonly programs: RecordedProgram[];
    /** Workgroups of each program, in two dimensions. */
    readonly grids: number[];
    readonly parameters: Uint32Array[];
    isSound: boolean;
    isComplete: boolean;
    /** Made by the first replay. */
    repeat: Repeat | undefined;
  }

  const recordings: (Recording | undefined)[] = [];
  let recording: Recording | undefined;

  const drop = (which: number): void => {
    recordings[which]?.repeat?.parameters.destroy();
    recordings[which] = undefined;
  };
  const spoil = (): void => {
    if (recording) recording.isSound = false;
  };

  /**
   * Makes separate parameters and bind groups, because the next pass overwrites those of this one. Programs with the same
   * parameters share them, so that fusion can recognize equal programs.
   */
  const prepare = ({ programs, parameters, grids }: Recording): Repeat => {
    const device = options.device();
    const slotOf = new Map<string, number>();
    const slotKeys = parameters.map((values) => values.join());
    for (const values of slotKeys) if (!slotOf.has(values)) slotOf.set(values, slotOf.size);
    const words = new Uint32Array(Math.max(1, slotOf.size) * (slotBytes / WORD));
    for (const [at, values] of parameters.entries())
      words.set(values, slotOf.get(slotKeys[at]!)! * (slotBytes / WORD));
    const buffer = device.createBuffer({ size: words.byteLength, usage: options.usage });
    device.queue.writeBuffer(buffer, 0, new Uint8Array(words.buffer), 0, words.byteLength);
    const list = programs.map((program, at) => ({
      pipeline: program.pipeline,
      group: options.makeGroup(program, buffer, slotOf.get(slotKeys[at]!)!),
      x: grids[2 * at]!,
      y: grids[2 * at + 1]!,
    }));
    // The buffer and the list have them now.
    parameters.length = grids.length = programs.length = 0;
    return { parameters: buffer, list, runs: undefined, submissions: [] };
  };
  const split = (list: readonly GpuDispatch[]): (readonly GpuDispatch[])[] => {
    const submissions: (readonly GpuDispatch[])[] = [];
    for (
      let from = 0, size = FIRST_SUBMISSION;
      from < list.length;
      from += submissions.at(-1)!.length, size = Math.min(LARGEST_SUBMISSION, size * GROWTH)
    ) {
      // A small remainder is not worth a submission of its own.
      submissions.push(list.slice(from, list.length - from <= 2 * size ? list.length : from + size));
    }
    return submissions;
  };
  const submit = (list: readonly GpuDispatch[]): void => {
    const device = options.device();
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.dispatchAll?.(list);
    let set: object | undefined;
    for (const { pipeline, group, x, y } of pass.dispatchAll ? [] : list) {
      if (pipeline !== set) pass.setPipeline((set = pipeline));
      pass.setBindGroup(0, group);
      pass.dispatchWorkgroups(x, y, 1);
    }
    pass.end();
    device.queue.submit([encoder.finish()]);
  };

  return {
    get isRecording() {
      return recording?.isSound === true;
    },
    begin(which) {
      drop(which);
      recordings[which] = recording = {
        programs: [],
        grids: [],
        parameters: [],
        isSound: true,
        isComplete: false,
        repeat: undefined,
      };
    },
    add(program, x, y, parameters) {
      recording?.programs.push(program);
      recording?.grids.push(x, y);
      recording?.parameters.push(parameters);
    },
    spoil,
    end(which) {
      const isSound = recording?.isSound === true;
      if (recording) recording.isComplete = isSound;
      if (!isSound) drop(which);
      recording = undefined;
      return isSound;
    },
    replay(which) {
      const recorded = recordings[which];
      if (!recorded?.isComplete) return false;
      const repeat = (recorded.repeat ??= prepare(recorded));
      const runs = options.device().fusedDispatches?.(repeat.list) ?? repeat.list;
      if (repeat.runs !== runs) repeat.submissions = split((repeat.runs = runs));
      for (const list of repeat.submissions) submit(list);
      return true;
    },
    forget() {
      spoil();
      for (const which of recordings.keys()) drop(which);
    },
  };
}

/** Part of WebGPU with which the programs of a graph are run, in Dawn and in browsers. */

export interface GpuBuffer {
  destroy(): void;
}

export interface GpuPipeline {
  getBindGroupLayout(index: number): object;
}

/** Run of a program, with its workgroups in two dimensions. */
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
  /** Our addition, present when programs are fused: runs a list unchanged. */
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
  /** Our addition, present when programs are fused: dispatches to run instead of a constant list that is run repeatedly. */
  fusedDispatches?(list: readonly GpuDispatch[]): readonly GpuDispatch[];
  addEventListener(event: "uncapturederror", listener: () => void): void;
}
