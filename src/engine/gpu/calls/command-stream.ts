import type {
  GpuBuffer,
  GpuDevice,
  GpuPass,
  GpuPipeline,
  openGraphRecordings,
  RecordedProgram,
} from "./graph-recordings.ts";

/** Addresses of the stream's memory cells (wasm/kernels/gpu-commands.h). */
interface StreamCells {
  /** uint64: address of the stream. */
  readonly stream: number;
  /** uint32: number of unread words. */
  readonly words: number;
  /** uint64: handle of their compute pass. */
  readonly pass: number;
}

interface StreamOptions {
  readonly cells: StreamCells;
  /** Maximum number of recordings; 0: graphs are not replayed. */
  readonly maxRecordings: number;
  /** Records complete graphs; an option, because the script gets this function as text, too. */
  readonly openRecordings: typeof openGraphRecordings;
  words(): Uint32Array;
  /** Called when the kernels have found the script. */
  begin(): void;
  /** True while programs are being compiled, so that none can run. */
  isCompiling(): boolean;
  /** Resolve handles to WebGPU's objects. */
  pass(handle: number): GpuPass;
  pipeline(handle: number): GpuPipeline;
  buffer(handle: number): object;
}

export interface CommandStream {
  ask(what: number): number;
  use(device: GpuDevice): void;
  /** Ends a pass: encodes its programs and writes their parameters. */
  end(handle: number): void;
  /** Drops bind groups and recordings, because handles may change their meaning. */
  forget(): void;
  /** Invalidates the current recording, because of an operation that cannot be recorded. */
  unexpected(): void;
}

/**
 * Encodes the programs that our kernels write into a stream in the heap: hundreds per token, for each of which llama.cpp
 * would make ten calls. Bind groups are made once, and expected in the order of the last token. A complete graph is
 * recorded and can be replayed.
 *
 * Part of llama.cpp's script in a worker, which gets this function as text: it must not refer to anything outside of it.
 */
export function openCommandStream(options: StreamOptions): CommandStream {
  /** Commands of the kernels (gpu-commands.h); the bits above hold the number of a recording. */
  const FLUSH = 1;
  const BEGIN = 2;
  const END = 3;
  const REPLAY = 4;
  const ASKED_RECORDING = 8;
  const ANSWERS_SCRIPT = 0xdab0000;
  /** Layout of a program in the stream, in words. */
  const PROGRAM_HEAD = 4;
  const KEY_HEAD = 2;
  const KEY_ENTRY = 6;
  const HANDLE_BYTES = 8;
  const WORD = 4;
  const HIGH_WORD = 2 ** 32;
  const WHOLE_SIZE = 2 ** 64;
  /** Bytes for parameters: no program has more, and WebGPU allows a buffer to be bound at multiples of it. */
  const SLOT_BYTES = 256;
  const SLOTS_OF_ARENA = 256;
  /** GPUBufferUsage.UNIFORM | COPY_DST */
  const PARAMETERS = 0x48;
  /** Several times the number that the steps of a large model use. */
  const MAX_GROUPS = 16_384;

  interface Program extends RecordedProgram {
    readonly slot: number;
    readonly group: object;
    /** Next program with the same hash. */
    readonly sibling: Program | undefined;
    /** Program that followed this one the last time. */
    next: Program | undefined;
  }
  interface Arena {
    readonly buffer: GpuBuffer;
    readonly bytes: Uint8Array;
    readonly words: Uint32Array;
  }

  let device: GpuDevice | undefined;
  let arenas: Arena[] = [];
  let programs = new Map<number, Program>();
  let layouts = new Map<object, object>();
  let last: Program | undefined;
  let first: Program | undefined;
  /** Number of programs of the current pass, and its current pipeline. */
  let slots = 0;
  let current: object | undefined;

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
  const makeGroup = ({ key, pipeline }: RecordedProgram, parameters: GpuBuffer, slot: number): object => {
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

  const recordings = options.openRecordings({
    device: opened,
    slotBytes: SLOT_BYTES,
    usage: PARAMETERS,
    makeGroup,
  });
  const forget = (): void => {
    programs = new Map();
    layouts = new Map();
    last = first = undefined;
    recordings.forget();
  };

  const isAt = (program: Program, slot: number, heap: Uint32Array, from: number, length: number): boolean => {
    const { key } = program;
    if (program.slot !== slot || key.length !== length) return false;
    for (let at = 0; at < length; at++) if (key[at] !== heap[from + at]) return false;
    return true;
  };
  /** Finds or makes the program whose key is in the heap. */
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
      if (programs.size >= MAX_GROUPS) forget();
      const key = heap.slice(from, from + length);
      const pipeline = options.pipeline(key[0]! * HANDLE_BYTES);
      const group = makeGroup({ key, pipeline }, arenaOf(slot).buffer, slot % SLOTS_OF_ARENA);
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
      if (!recordings.isRecording) continue;
      const parameterWords = heap.slice(from + length, from + length + count);
      recordings.add(program, heap[at + 1]!, heap[at + 2]!, parameterWords);
    }
  };
  const flush = (): void => {
    const heap = options.words();
    const { cells } = options;
    const words = heap[cells.words / WORD]!;
    heap[cells.words / WORD] = 0;
    if (options.isCompiling()) {
      recordings.spoil();
      return;
    }
    const pass = options.pass(number(heap, cells.pass / WORD));
    if (words > 0) encode(pass, heap, number(heap, cells.stream / WORD) / WORD, words);
  };

  return {
    ask(what) {
      const which = what >> ASKED_RECORDING;
      switch (what & (2 ** ASKED_RECORDING - 1)) {
        case FLUSH:
          flush();
          return 1;
        case BEGIN:
          recordings.begin(which);
          return 1;
        case END:
          return recordings.end(which) ? 1 : 0;
        case REPLAY:
          try {
            return device && recordings.replay(which) ? 1 : 0;
          } catch (error) {
            forget();
            throw error;
          }
        default:
          options.begin();
          return ANSWERS_SCRIPT | options.maxRecordings;
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
    unexpected: () => recordings.spoil(),
  };
}
