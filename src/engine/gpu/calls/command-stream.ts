import type { GpuBuffer, GpuDevice, GpuDispatch, GpuPass, GpuPipeline } from "./webgpu-types.ts";

/** Where the kernels keep the stream (wasm/kernels/gpu-commands.h). */
interface StreamCells {
  /** uint64: address of the stream. */
  readonly stream: number;
  /** uint32: how many words of it are to be read. */
  readonly words: number;
  /** uint64: handle of the compute pass to which they belong. */
  readonly pass: number;
}

interface StreamOptions {
  readonly cells: StreamCells;
  /** Recordings that are kept at most; 0: nothing is replayed. */
  readonly mostRecordings: number;
  /** The heap as it is now. */
  words(): Uint32Array;
  /** The kernels have found the script. */
  begin(): void;
  /** True while programs are compiled, and none can run. */
  isDeaf(): boolean;
  /** WebGPU's objects by their handles. */
  pass(handle: number): GpuPass;
  pipeline(handle: number): GpuPipeline;
  buffer(handle: number): object;
}

export interface CommandStream {
  /** Answers the kernels. */
  ask(what: number): number;
  /** A device is about to be used. */
  use(device: GpuDevice): void;
  /** A pass ends: its programs are encoded, and their parameters written. */
  end(handle: number): void;
  /** Handles may mean something else from now on: bind groups and recordings are dropped. */
  forget(): void;
  /** Something happens that a recording has no room for. */
  unexpected(): void;
}

/**
 * Encodes the programs that our kernels write into a stream in the heap: hundreds for each token, which llama.cpp would describe
 * in ten calls each. Bind groups are made once, and expected in the order of the last token. What a whole graph asked for is
 * recorded and can be repeated, in few submissions, the first of them small so that the GPU starts early.
 *
 * Part of llama.cpp's script in a worker, which gets this function as text: it must not refer to anything outside of it.
 */
export function openCommandStream(options: StreamOptions): CommandStream {
  /** What the kernels ask (gpu-commands.h), with the number of a recording above it. */
  const FLUSH = 1;
  const BEGIN = 2;
  const END = 3;
  const REPLAY = 4;
  const ASKED_RECORDING = 8;
  const ANSWERS_SCRIPT = 0xdab0000;
  /** A program in the stream. */
  const PROGRAM_HEAD = 4;
  const KEY_HEAD = 2;
  const KEY_ENTRY = 6;
  const HANDLE_BYTES = 8;
  const WORD = 4;
  const HIGH_WORD = 2 ** 32;
  const WHOLE_SIZE = 2 ** 64;
  /** Of parameters: no program has more, and WebGPU allows a buffer to be bound at multiples of it. */
  const SLOT_BYTES = 256;
  const SLOTS_OF_ARENA = 256;
  /** GPUBufferUsage.UNIFORM | COPY_DST */
  const PARAMETERS = 0x48;
  /** Several times what the steps of a large model use. */
  const MOST_GROUPS = 16_384;
  /** Programs of the first submission of a replay, by how much the next ones grow, and of the largest. */
  const FIRST_SUBMISSION = 32;
  const GROWTH = 4;
  const LARGEST_SUBMISSION = 256;

  interface Program {
    readonly slot: number;
    /** Its pipeline and buffers, as in the stream. */
    readonly key: Uint32Array;
    readonly pipeline: GpuPipeline;
    readonly group: object;
    /** With the same hash. */
    readonly sibling: Program | undefined;
    /** The one that followed last. */
    next: Program | undefined;
  }
  interface Arena {
    readonly buffer: GpuBuffer;
    readonly bytes: Uint8Array;
    readonly words: Uint32Array;
  }
  interface Repeat {
    readonly parameters: GpuBuffer;
    readonly list: readonly GpuDispatch[];
    /** What runs in place of the list, and its submissions. */
    runs: readonly GpuDispatch[] | undefined;
    submissions: (readonly GpuDispatch[])[];
  }
  interface Recording {
    readonly programs: Program[];
    /** Workgroups of each, in two dimensions. */
    readonly grids: number[];
    readonly parameters: Uint32Array[];
    isSound: boolean;
    isComplete: boolean;
    /** Made when it is first repeated. */
    repeat: Repeat | undefined;
  }

  let device: GpuDevice | undefined;
  let arenas: Arena[] = [];
  let programs = new Map<number, Program>();
  let layouts = new Map<object, object>();
  let last: Program | undefined;
  let first: Program | undefined;
  /** Programs of the pass that is being encoded, and its pipeline. */
  let slots = 0;
  let current: object | undefined;
  let recordings: (Recording | undefined)[] = [];
  let recording: Recording | undefined;

  const drop = (which: number): void => {
    recordings[which]?.repeat?.parameters.destroy();
    recordings[which] = undefined;
  };
  const forget = (): void => {
    programs = new Map();
    layouts = new Map();
    last = first = undefined;
    if (recording) recording.isSound = false;
    for (const which of recordings.keys()) drop(which);
  };
  const opened = (): GpuDevice => {
    if (!device) throw new Error("no GPU device is open");
    return device;
  };

  const arenaOf = (slot: number): Arena => {
    const which = Math.floor(slot / SLOTS_OF_ARENA);
    let arena = arenas[which];
    if (!arena) {
      const bytes = new Uint8Array(SLOTS_OF_ARENA * SLOT_BYTES);
      const buffer = opened().createBuffer({ size: bytes.length, usage: PARAMETERS });
      arenas[which] = arena = { buffer, bytes, words: new Uint32Array(bytes.buffer) };
    }
    return arena;
  };

  const number = (key: Uint32Array, at: number): number => key[at]! + key[at + 1]! * HIGH_WORD;
  const makeGroup = (
    key: Uint32Array,
    pipeline: GpuPipeline,
    parameters: GpuBuffer,
    slot: number,
  ): object => {
    let layout = layouts.get(pipeline);
    if (!layout) layouts.set(pipeline, (layout = pipeline.getBindGroupLayout(0)));
    const entries: object[] = [];
    for (let at = KEY_HEAD; at < key.length; at += KEY_ENTRY) {
      const buffer = options.buffer(key[at + 1]! * HANDLE_BYTES);
      const size = number(key, at + 4);
      const range = { offset: number(key, at + 2), size: size < WHOLE_SIZE - HIGH_WORD ? size : undefined };
      entries.push({ binding: key[at], resource: { buffer, ...range } });
    }
    const offset = slot * SLOT_BYTES;
    entries.push({ binding: key[1], resource: { buffer: parameters, offset, size: SLOT_BYTES } });
    return opened().createBindGroup({ layout, entries });
  };

  const isAt = (program: Program, slot: number, heap: Uint32Array, from: number, length: number): boolean => {
    const { key } = program;
    if (program.slot !== slot || key.length !== length) return false;
    for (let at = 0; at < length; at++) if (key[at] !== heap[from + at]) return false;
    return true;
  };
  /** The program whose key stands in the heap. */
  const find = (heap: Uint32Array, from: number, length: number, slot: number): Program => {
    const expected = last ? last.next : first;
    if (expected && isAt(expected, slot, heap, from, length)) return (last = expected);
    let hash = slot;
    for (let at = from; at < from + length; at++)
      hash = Math.imul(hash ^ heap[at]!, 0x9e3779b1) ^ (hash >>> 15);
    const known = programs.get(hash);
    let found = known;
    while (found && !isAt(found, slot, heap, from, length)) found = found.sibling;
    if (!found) {
      if (programs.size >= MOST_GROUPS) forget();
      const key = heap.slice(from, from + length);
      const pipeline = options.pipeline(key[0]! * HANDLE_BYTES);
      const group = makeGroup(key, pipeline, arenaOf(slot).buffer, slot % SLOTS_OF_ARENA);
      found = { slot, key, pipeline, group, sibling: programs.get(hash), next: undefined };
      programs.set(hash, found);
    }
    if (last) last.next = found;
    else first = found;
    return (last = found);
  };

  const encode = (pass: GpuPass, heap: Uint32Array, begin: number, words: number): void => {
    for (let at = begin, size = 0; at < begin + words; at += size) {
      size = heap[at]!;
      const count = heap[at + 3]!;
      const from = at + PROGRAM_HEAD;
      const length = KEY_HEAD + heap[from + 1]! * KEY_ENTRY;
      const slot = slots++;
      const program = find(heap, from, length, slot);
      const { words: parameters } = arenaOf(slot);
      const into = (slot % SLOTS_OF_ARENA) * (SLOT_BYTES / WORD);
      for (let word = 0; word < count; word++) parameters[into + word] = heap[from + length + word]!;
      const { pipeline, group } = program;
      if (pipeline !== current) pass.setPipeline((current = pipeline));
      pass.setBindGroup(0, group);
      pass.dispatchWorkgroups(heap[at + 1]!, heap[at + 2]!, 1);
      if (!recording?.isSound) continue;
      recording.programs.push(program);
      recording.grids.push(heap[at + 1]!, heap[at + 2]!);
      recording.parameters.push(heap.slice(from + length, from + length + count));
    }
  };
  const flush = (): void => {
    const heap = options.words();
    const { cells } = options;
    const words = heap[cells.words / WORD]!;
    heap[cells.words / WORD] = 0;
    if (options.isDeaf()) {
      if (recording) recording.isSound = false;
      return;
    }
    const pass = options.pass(number(heap, cells.pass / WORD));
    if (words > 0) encode(pass, heap, number(heap, cells.stream / WORD) / WORD, words);
  };

  /**
   * Own parameters and bind groups, since those of passes are used again by the next pass. Programs with the same parameters
   * share them, which shows that they do the same.
   */
  const prepare = ({ programs: all, parameters, grids }: Recording): Repeat => {
    const slotOf = new Map<string, number>();
    const given = parameters.map((values) => values.join());
    for (const values of given) if (!slotOf.has(values)) slotOf.set(values, slotOf.size);
    const words = new Uint32Array(Math.max(1, slotOf.size) * (SLOT_BYTES / WORD));
    for (const [at, values] of parameters.entries())
      words.set(values, slotOf.get(given[at]!)! * (SLOT_BYTES / WORD));
    const buffer = opened().createBuffer({ size: words.byteLength, usage: PARAMETERS });
    opened().queue.writeBuffer(buffer, 0, new Uint8Array(words.buffer), 0, words.byteLength);
    const list = all.map(({ key, pipeline }, at) => ({
      pipeline,
      group: makeGroup(key, pipeline, buffer, slotOf.get(given[at]!)!),
      x: grids[2 * at]!,
      y: grids[2 * at + 1]!,
    }));
    // They are in the buffer and in the list now.
    parameters.length = grids.length = all.length = 0;
    return { parameters: buffer, list, runs: undefined, submissions: [] };
  };
  const split = (list: readonly GpuDispatch[]): (readonly GpuDispatch[])[] => {
    const submissions: (readonly GpuDispatch[])[] = [];
    for (
      let from = 0, size = FIRST_SUBMISSION;
      from < list.length;
      from += submissions.at(-1)!.length, size = Math.min(LARGEST_SUBMISSION, size * GROWTH)
    ) {
      // A small rest is not worth a submission of its own.
      submissions.push(list.slice(from, list.length - from <= 2 * size ? list.length : from + size));
    }
    return submissions;
  };
  const replay = (which: number): number => {
    const recorded = recordings[which];
    if (!recorded?.isComplete || !device) return 0;
    const repeat = (recorded.repeat ??= prepare(recorded));
    const runs = device.inPlaceOf?.(repeat.list) ?? repeat.list;
    if (repeat.runs !== runs) repeat.submissions = split((repeat.runs = runs));
    for (const list of repeat.submissions) {
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
    }
    return 1;
  };

  return {
    ask(what) {
      const which = what >> ASKED_RECORDING;
      switch (what & (2 ** ASKED_RECORDING - 1)) {
        case FLUSH:
          flush();
          return 1;
        case BEGIN:
          drop(which);
          recordings[which] = recording = {
            programs: [],
            grids: [],
            parameters: [],
            isSound: true,
            isComplete: false,
            repeat: undefined,
          };
          return 1;
        case END: {
          const isSound = recording?.isSound === true;
          if (recording) recording.isComplete = isSound;
          if (!isSound) drop(which);
          recording = undefined;
          return isSound ? 1 : 0;
        }
        case REPLAY:
          try {
            return replay(which);
          } catch (error) {
            forget();
            throw error;
          }
        default:
          options.begin();
          return ANSWERS_SCRIPT | options.mostRecordings;
      }
    },
    use(used) {
      if (used === device) return;
      forget();
      arenas = [];
      device = used;
      void used.lost.then(forget);
      used.addEventListener("uncapturederror", forget);
    },
    end(handle) {
      const heap = options.words();
      if (handle !== number(heap, options.cells.pass / WORD)) return;
      flush();
      for (let at = 0; at < slots; at += SLOTS_OF_ARENA) {
        const { buffer, bytes } = arenaOf(at);
        const size = Math.min(slots - at, SLOTS_OF_ARENA) * SLOT_BYTES;
        opened().queue.writeBuffer(buffer, 0, bytes, 0, size);
      }
      slots = 0;
      current = undefined;
    },
    forget,
    unexpected() {
      if (recording) recording.isSound = false;
    },
  };
}
