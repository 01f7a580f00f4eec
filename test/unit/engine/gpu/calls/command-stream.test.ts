import vm from "node:vm";
import { beforeEach, describe, expect, test } from "vitest";
import { type CommandStream, openCommandStream } from "../../../../../src/engine/gpu/calls/command-stream.ts";
import {
  type GpuBuffer,
  type GpuDevice,
  type GpuDispatch,
  type GpuPass,
  openGraphRecordings,
} from "../../../../../src/engine/gpu/calls/graph-recordings.ts";

const CELLS = { stream: 16, words: 24, pass: 32 };
const STREAM = 64;
const PASS = 800;
const SLOT_BYTES = 256;
/** Commands of the kernels. */
const ASK = { script: 0, flush: 1, begin: 2, end: 3, replay: 4 } as const;

interface Recorded extends GpuDevice {
  /** Calls in order. */
  readonly calls: string[];
  readonly destroyed: object[];
  readonly written: { readonly buffer: object; readonly data: Uint8Array }[];
  lose(): void;
  fail: () => void;
  /** Called for complete lists, if passes support them. */
  dispatchAll?: GpuPass["dispatchAll"];
  /** Throws when work is submitted. */
  isBroken: boolean;
}

function recordDevice(): Recorded {
  const calls: string[] = [];
  const destroyed: object[] = [];
  const written: Recorded["written"] = [];
  const lost = Promise.withResolvers<unknown>();
  let made = 0;
  const device: Recorded = {
    calls,
    destroyed,
    written,
    lose: () => lost.resolve(undefined),
    fail: () => {},
    isBroken: false,
    lost: lost.promise,
    queue: {
      writeBuffer: (buffer, at, data, offset, size) => {
        written.push({ buffer, data: data.slice(offset, offset + size) });
        calls.push(`write ${at}`);
      },
      submit: () => {
        if (device.isBroken) throw new Error("submit failed");
        calls.push("submit");
      },
    },
    createBuffer: () => {
      const buffer: GpuBuffer = { destroy: () => void destroyed.push(buffer) };
      return buffer;
    },
    createBindGroup: (descriptor) => {
      calls.push("group");
      return { name: `group ${++made}`, descriptor };
    },
    createCommandEncoder: () => ({
      beginComputePass: () => ({
        ...pass(calls),
        ...(device.dispatchAll && { dispatchAll: device.dispatchAll }),
      }),
      finish: () => ({}),
    }),
    addEventListener: (_event, listener) => void (device.fail = listener),
  };
  return device;
}

function pass(calls: string[]): GpuPass {
  return {
    setPipeline: (pipeline) => void calls.push(`pipeline ${nameOf(pipeline)}`),
    setBindGroup: (_index, group) => void calls.push(nameOf(group)),
    dispatchWorkgroups: (x, y, z) => void calls.push(`${x} x ${y} x ${z}`),
    end: () => void calls.push("end"),
  };
}

const nameOf = (thing: object): string => ("name" in thing ? String(thing.name) : "");

const getBindGroupLayout = (): object => ({});
const PIPELINES = new Map([
  [8, { name: "A", getBindGroupLayout }],
  [16, { name: "B", getBindGroupLayout }],
]);

interface Program {
  readonly pipeline?: number;
  readonly buffer?: number;
  readonly offset?: number;
  readonly parameters?: readonly number[];
  readonly x?: number;
}

let device: Recorded;
let heap: Uint32Array;
let buffers: Map<number, object>;
let stream: CommandStream;
/** Number of times that the kernels have found the script, and whether programs are being compiled. */
let begun: number;
let isCompiling: boolean;

beforeEach(() => {
  [begun, isCompiling] = [0, false];
  device = recordDevice();
  heap = new Uint32Array(65_536);
  heap[CELLS.stream / 4] = STREAM;
  heap[CELLS.pass / 4] = PASS;
  buffers = new Map([
    [24, { name: "weights" }],
    [32, { name: "results" }],
  ]);
  stream = open(3);
  stream.use(device);
});

function named<Kind>(kinds: ReadonlyMap<number, Kind>, handle: number): Kind {
  const found = kinds.get(handle);
  if (!found) throw new Error(`there is no object ${handle}`);
  return found;
}

function open(maxRecordings: number): CommandStream {
  // From its text alone, like the engine.
  const opened: typeof openCommandStream = vm.runInThisContext(`(${openCommandStream.toString()})`);
  const openRecordings: typeof openGraphRecordings = vm.runInThisContext(
    `(${openGraphRecordings.toString()})`,
  );
  return opened({
    cells: CELLS,
    openRecordings,
    maxRecordings,
    words: () => heap,
    begin: () => (begun += 1),
    isCompiling: () => isCompiling,
    pass: () => pass(device.calls),
    pipeline: (handle) => named(PIPELINES, handle),
    buffer: (handle) => named(buffers, handle),
  });
}

/** Writes programs into the stream, like the kernels. */
function write(...programs: readonly Program[]): void {
  let at = STREAM / 4 + heap[CELLS.words / 4]!;
  for (const { pipeline = 8, buffer = 24, offset = 0, parameters = [], x = 1 } of programs) {
    const words = [
      0,
      x,
      2,
      parameters.length,
      pipeline / 8,
      1,
      0,
      buffer / 8,
      offset,
      0,
      64,
      0,
      ...parameters,
    ];
    words[0] = words.length;
    heap.set(words, at);
    at += words.length;
  }
  heap[CELLS.words / 4] = at - STREAM / 4;
}

/** Calls of WebGPU for programs and the end of their pass. */
function encode(...programs: readonly Program[]): string[] {
  device.calls.length = 0;
  write(...programs);
  stream.end(PASS);
  return [...device.calls];
}

function record(which: number, ...programs: readonly Program[]): boolean {
  stream.ask(ASK.begin | (which << 8));
  encode(...programs);
  return stream.ask(ASK.end | (which << 8)) === 1;
}

function replay(which: number): string[] | undefined {
  device.calls.length = 0;
  return stream.ask(ASK.replay | (which << 8)) === 1 ? [...device.calls] : undefined;
}

describe("programs in the stream", () => {
  test("are encoded in order, with their parameters in one write", () => {
    const calls = encode({ parameters: [1, 2] }, { x: 3, parameters: [5] }, { pipeline: 16 });
    expect(calls.join(", ")).toBe(
      "group, pipeline A, group 1, 1 x 2 x 1, group, group 2, 3 x 2 x 1, group, pipeline B, group 3, 1 x 2 x 1, write 0",
    );
    const words = new Uint32Array(device.written[0]!.data.buffer);
    expect(words).toHaveLength((3 * SLOT_BYTES) / 4);
    expect([words[0], words[1], words[SLOT_BYTES / 4]]).toEqual([1, 2, 5]);
  });

  test("have bind groups that are made once, in any order of programs", () => {
    const [a, b] = [{ buffer: 24 }, { buffer: 32 }];
    encode(a, b);
    expect(encode(a, b)).not.toContain("group");
    encode(b, a);
    expect(encode(a, b)).toEqual(["pipeline A", "group 1", "1 x 2 x 1", "group 2", "1 x 2 x 1", "write 0"]);
    expect(encode({ ...a, offset: 256 })).toContain("group");
  });

  test("of two reads of the stream in one pass have separate parameters", () => {
    write({ parameters: [1] });
    stream.ask(ASK.flush);
    encode({ parameters: [2] });
    const words = new Uint32Array(device.written[0]!.data.buffer);
    expect([words[0], words[SLOT_BYTES / 4]]).toEqual([1, 2]);
  });

  test("may need more than one buffer of parameters", () => {
    const many = Array.from({ length: 300 }, (_, value) => ({ parameters: [value] }));
    const calls = encode(...many);
    expect(calls.filter((call) => call === "write 0")).toHaveLength(2);
    expect(new Uint32Array(device.written[1]!.data.buffer)[(43 * SLOT_BYTES) / 4]).toBe(299);
  });

  test("are not encoded at the end of another pass", () => {
    write({});
    stream.end(PASS + 8);
    expect(device.calls).toEqual([]);
  });

  test("are dropped while they are compiled, and such a graph is not replayed", () => {
    isCompiling = true;
    expect(record(0, {}, { pipeline: 16 })).toBe(false);
    expect(encode({})).toEqual([]);
    isCompiling = false;
    expect(replay(0)).toBeUndefined();
    expect(encode({})).toContain("1 x 2 x 1");
    stream.ask(ASK.script);
    expect(begun).toBe(1);
  });

  test("have new bind groups after handles may have changed their meaning", () => {
    encode({});
    stream.forget();
    buffers.set(24, { name: "other weights" });
    expect(encode({})).toContain("group");
  });

  test("bind the ranges of their buffers", () => {
    const groups: unknown[] = [];
    device.createBindGroup = (descriptor) => {
      groups.push(descriptor.entries);
      return {};
    };
    write({ buffer: 32, offset: 512 });
    // The size that means "up to the end" in WebGPU.
    heap.fill(0xffffffff, STREAM / 4 + 10, STREAM / 4 + 12);
    stream.end(PASS);
    expect(groups).toEqual([
      [
        { binding: 0, resource: { buffer: { name: "results" }, offset: 512, size: undefined } },
        { binding: 1, resource: expect.objectContaining({ offset: 0, size: SLOT_BYTES }) },
      ],
    ]);
  });
});

describe("a recording", () => {
  test("is replayed with its recorded parameters, which are written once", () => {
    expect(record(1, { parameters: [7] }, { x: 4, parameters: [8] }, { pipeline: 16 })).toBe(true);
    encode({ parameters: [9] });
    device.written.length = 0;
    const repeated = [
      "pipeline A",
      "group 4",
      "1 x 2 x 1",
      "group 5",
      "4 x 2 x 1",
      "pipeline B",
      "group 6",
      "1 x 2 x 1",
    ];
    expect(replay(1)).toEqual(["write 0", "group", "group", "group", ...repeated, "end", "submit"]);
    const words = new Uint32Array(device.written[0]!.data.buffer);
    expect([words[0], words[SLOT_BYTES / 4]]).toEqual([7, 8]);
    expect(replay(1)).toEqual([...repeated, "end", "submit"]);
  });

  test("of many programs is submitted in parts, starting with a small one", () => {
    record(0, ...Array.from({ length: 600 }, (_, x) => ({ x })));
    const parts = replay(0)!
      .join(",")
      .split("submit")
      .map((part) => part.split(" x 2 x 1").length - 1);
    expect(parts).toEqual([32, 128, 440, 0]);
  });

  test("passes the same lists each time, if passes support lists", () => {
    record(0, ...Array.from({ length: 200 }, (_, x) => ({ x })));
    const lists: (readonly GpuDispatch[])[] = [];
    device.dispatchAll = (list) => void lists.push(list);
    expect(replay(0)?.slice(-4)).toEqual(["end", "submit", "end", "submit"]);
    replay(0);
    expect(lists.map(({ length }) => length)).toEqual([32, 168, 32, 168]);
    expect(lists[2]).toBe(lists[0]);
    expect(lists[1]?.at(-1)).toMatchObject({ pipeline: PIPELINES.get(8), x: 199, y: 2 });
  });

  test("passes the fused list, in as many parts as needed", () => {
    record(0, ...Array.from({ length: 200 }, (_, x) => ({ x })));
    const lists: (readonly GpuDispatch[])[] = [];
    device.dispatchAll = (list) => void lists.push(list);
    let given: readonly GpuDispatch[] | undefined;
    let most = 200;
    let runs: readonly GpuDispatch[] | undefined;
    device.fusedDispatches = (list) => {
      given ??= list;
      expect(list).toBe(given);
      if (runs?.length !== most) runs = list.slice(0, most);
      return runs;
    };
    replay(0);
    most = 64;
    replay(0);
    replay(0);
    expect(lists.map(({ length }) => length)).toEqual([32, 168, 64, 64]);
    expect(lists[3]).toBe(lists[2]);
  });

  test("shares equal parameters", () => {
    record(0, { parameters: [7] }, { parameters: [8, 9] }, { parameters: [7], x: 5 }, { parameters: [8] });
    device.written.length = 0;
    const offsets: unknown[] = [];
    device.createBindGroup = ({ entries }) => {
      const resource: unknown = Reflect.get(entries.at(-1) ?? {}, "resource");
      offsets.push(Reflect.get(Object(resource), "offset"));
      return {};
    };
    replay(0);
    expect(offsets).toEqual([0, SLOT_BYTES, 0, 2 * SLOT_BYTES]);
    const words = new Uint32Array(device.written[0]!.data.buffer);
    expect(words.length).toBe((3 * SLOT_BYTES) / 4);
    expect([words[0], words[SLOT_BYTES / 4], words[SLOT_BYTES / 4 + 1], words[SLOT_BYTES / 2]]).toEqual([
      7, 8, 9, 8,
    ]);
  });

  test("is one of several, and can be replaced", () => {
    record(0, { x: 10 });
    record(1, { x: 11 });
    expect(replay(0)).toContain("10 x 2 x 1");
    expect(replay(1)).toContain("11 x 2 x 1");
    record(0, { x: 12 });
    expect(device.destroyed).toHaveLength(1);
    expect(replay(0)).toContain("12 x 2 x 1");
    expect(replay(2)).toBeUndefined();
  });

  test.each<[string, () => void]>([
    ["another GPU operation was called", () => stream.unexpected()],
    ["a buffer was made or destroyed", () => stream.forget()],
  ])("is invalid when meanwhile %s", (_what, happens) => {
    stream.ask(ASK.begin);
    happens();
    encode({});
    expect(stream.ask(ASK.end)).toBe(0);
    expect(replay(0)).toBeUndefined();
  });

  test("that never ended is not replayed", () => {
    stream.ask(ASK.begin);
    encode({});
    expect(replay(0)).toBeUndefined();
  });

  test.each<[string, () => unknown]>([
    ["a buffer is made or destroyed", () => stream.forget()],
    ["the device is lost", () => device.lose()],
    ["the device reports an error", () => device.fail()],
    ["another device is used", () => stream.use(recordDevice())],
  ])("is dropped when %s", async (_what, happens) => {
    record(0, {});
    expect(replay(0)).toBeDefined();
    happens();
    await Promise.resolve();
    expect(replay(0)).toBeUndefined();
    expect(device.destroyed).toHaveLength(1);
  });

  test("is dropped when its submission fails, and the error is passed to llama.cpp", () => {
    record(0, {});
    record(1, {});
    device.isBroken = true;
    expect(() => replay(0)).toThrow("submit failed");
    device.isBroken = false;
    expect([replay(0), replay(1)]).toEqual([undefined, undefined]);
  });

  test("has a number below the maximum that the kernels get", () => {
    expect(stream.ask(ASK.script)).toBe(0xdab0003);
    expect(open(0).ask(ASK.script)).toBe(0xdab0000);
  });
});
