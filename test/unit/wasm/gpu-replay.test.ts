import { beforeEach, describe, expect, it } from "vitest";
import { OFFSETS } from "../../../wasm/llama-cpp-build.ts";
import { GpuGraphHost } from "../../support/gpu-graph-host.ts";

/** Bytes of ggml_tensor, up to and including its data. */
const TENSOR_BYTES = 256;
const AT = { buffer: 8, sources: 152, viewSource: 232 } as const;
const CONTEXT_OF_BUFFER = OFFSETS["ggml_backend_buffer.context"].at;
const CONTEXT_OF_BACKEND = OFFSETS["ggml_backend.context"].at;
const MAX_SOURCES = 10;

let host: GpuGraphHost;
let backend: number;

/** A ggml buffer whose context has the handle of a GPU buffer. */
function buffer(handle: number): number {
  const [at, context] = [host.place(128), host.place(16)];
  host.pointer(at + CONTEXT_OF_BUFFER, context);
  host.pointer(context, handle);
  return at;
}

interface Parts {
  readonly sources?: readonly number[];
  readonly viewOf?: number;
  readonly buffer?: number;
}

/** A tensor whose words, except addresses, are unique to it. */
function tensor({ sources = [], viewOf = 0, buffer: inBuffer = 0 }: Parts): number {
  const at = host.place(TENSOR_BYTES + 80);
  for (let word = 0; word < TENSOR_BYTES; word += 4) host.view.setUint32(at + word, at + word, true);
  host.pointer(at + AT.buffer, inBuffer);
  for (let source = 0; source < MAX_SOURCES; source++)
    host.pointer(at + AT.sources + 8 * source, sources[source] ?? 0);
  host.pointer(at + AT.viewSource, viewOf);
  return at;
}

/** ggml_cgraph with its table of uses, in which each node's count is its index. */
function graph(...nodes: number[]): number {
  const [at, list, counts, keys] = [
    host.place(96),
    host.place(8 * nodes.length),
    host.place(4 * 64),
    host.place(8 * 64),
  ];
  host.view.setInt32(at + 4, nodes.length, true);
  host.pointer(at + 16, list);
  host.pointer(at + 48, counts);
  host.pointer(at + 56, 64);
  host.pointer(at + 72, keys);
  for (const [position, node] of nodes.entries()) {
    host.pointer(list + 8 * position, node);
    let place = (node >> 4) % 64;
    while (host.view.getBigUint64(keys + 8 * place, true) !== 0n) place = (place + 1) % 64;
    host.pointer(keys + 8 * place, node);
    host.view.setInt32(counts + 4 * place, place + 1, true);
  }
  return at;
}

const compute = (what: number, on = backend): string[] => host.run("kernel_gpu_graph", on, what);
const recorded = (which: number): string[] => [`begin ${which}`, "encode", `end ${which}`];

beforeEach(async () => {
  host = await GpuGraphHost.start();
  backend = host.place(256);
  host.pointer(backend + CONTEXT_OF_BACKEND, host.place(16));
});

/** Two nodes; the source of the first is a view of a view of a view, and the second is a view. */
function family() {
  const weights = buffer(1000);
  const work = buffer(2000);
  const root = tensor({ buffer: weights });
  const view = tensor({ viewOf: root, buffer: weights });
  const viewOfView = tensor({ viewOf: view, buffer: weights });
  const leaf = tensor({ buffer: work });
  const first = tensor({ sources: [viewOfView, leaf], buffer: work });
  const parent = tensor({ buffer: work });
  const second = tensor({ sources: [first], viewOf: parent, buffer: work });
  return {
    tensors: { root, view, viewOfView, leaf, first, parent, second },
    graph: graph(first, second),
    weights,
    work,
  };
}

describe("a graph for a GPU", () => {
  it("that was computed before is replayed", () => {
    const { graph: one } = family();
    expect(compute(one)).toEqual(recorded(0));
    for (let times = 0; times < 3; times++) expect(compute(one)).toEqual(["replay 0"]);
  });

  it("is encoded again if any word of a tensor that it reads has changed, and replayed when it is restored", () => {
    const { tensors, graph: one, weights } = family();
    host.maxRecordings = 2;
    compute(one);
    const other = buffer(3000);
    const stranger = tensor({ buffer: weights });
    const missed: string[] = [];
    for (const [name, at] of Object.entries(tensors)) {
      for (let word = 0; word < TENSOR_BYTES; word += 4) {
        const isAddress =
          word === AT.buffer || word === AT.viewSource || (word >= AT.sources && word < AT.viewSource);
        // The upper half of an address cannot change alone, because the memory does not exist.
        if ((word - 4 === AT.buffer || (word > AT.sources && word < AT.viewSource + 8)) && word % 8 === 4)
          continue;
        const before = host.view.getUint32(at + word, true);
        host.view.setUint32(
          at + word,
          isAddress ? (word === AT.buffer ? other : stranger) : before ^ 1,
          true,
        );
        if (compute(one).includes("replay 0")) missed.push(`${name}, byte ${word}`);
        host.view.setUint32(at + word, before, true);
        expect(compute(one)).toEqual(["replay 0"]);
      }
    }
    expect(missed).toEqual([]);
  });

  it.each<[string, (known: ReturnType<typeof family>) => void]>([
    ["another backend", () => (backend = host.place(256))],
    ["another context of the backend", () => host.pointer(backend + CONTEXT_OF_BACKEND, host.place(16))],
    ["a buffer with another context", ({ work }) => host.pointer(work + CONTEXT_OF_BUFFER, host.place(16))],
    [
      "another buffer of the GPU behind the same one of ggml's",
      ({ weights }) => host.pointer(Number(host.view.getBigUint64(weights + CONTEXT_OF_BUFFER, true)), 1001),
    ],
    ["fewer nodes", ({ graph: one }) => host.view.setInt32(one + 4, 1, true)],
    [
      "other nodes",
      ({ graph: one, tensors }) =>
        host.pointer(Number(host.view.getBigUint64(one + 16, true)) + 8, tensors.first),
    ],
    [
      "a node that something else uses as well",
      ({ graph: one, tensors: { second } }) => {
        const counts = Number(host.view.getBigUint64(one + 48, true));
        const keys = Number(host.view.getBigUint64(one + 72, true));
        for (let place = 0; place < 64; place++)
          if (Number(host.view.getBigUint64(keys + 8 * place, true)) === second)
            host.view.setInt32(counts + 4 * place, 77, true);
      },
    ],
    ["another table of uses", ({ graph: one }) => host.pointer(one + 72, host.place(8 * 64))],
  ])("is encoded again with %s", (_what, change) => {
    const known = family();
    compute(known.graph);
    change(known);
    expect(compute(known.graph)).toContain("encode");
  });

  it("is one of several recordings, of which the least recently used is replaced", () => {
    const graphs = Array.from({ length: 4 }, () => family().graph);
    const [a = 0, b = 0, c = 0, d = 0] = graphs;
    expect([a, b, c].map((each) => compute(each))).toEqual([recorded(0), recorded(1), recorded(2)]);
    expect([b, a, c].map((each) => compute(each))).toEqual([["replay 1"], ["replay 0"], ["replay 2"]]);
    expect(compute(d)).toEqual(recorded(1));
    expect([a, c, d].map((each) => compute(each))).toEqual([["replay 0"], ["replay 2"], ["replay 1"]]);
    expect(compute(b)).toEqual(recorded(0));
  });

  it("is recorded again if the script has dropped its recording", () => {
    const { graph: one } = family();
    compute(one);
    host.hasRecording = false;
    expect(compute(one)).toEqual(["replay 0", ...recorded(0)]);
    host.hasRecording = true;
    expect(compute(one)).toEqual(["replay 0"]);
  });

  it("is not replayed if the script could not record it, or llama.cpp could not compute it", () => {
    const { graph: one } = family();
    host.isSound = false;
    expect([compute(one), compute(one)]).toEqual([recorded(0), recorded(0)]);
    host.isSound = true;
    host.status = -1;
    expect([compute(one), compute(one)]).toEqual([recorded(0), recorded(0)]);
  });

  it("is left to llama.cpp if it reads too many tensors", () => {
    const work = buffer(2000);
    const view = (): number => tensor({ viewOf: tensor({ buffer: work }), buffer: work });
    const nodes = Array.from({ length: 4 }, () =>
      tensor({ sources: Array.from({ length: MAX_SOURCES }, view), buffer: work }),
    );
    const one = graph(...nodes);
    expect(compute(one)).toEqual(["encode"]);
    expect(compute(one)).toEqual(["encode"]);
  });

  it("is left to llama.cpp if replay is disabled, or the script is not patched", async () => {
    host.maxRecordings = 0;
    const { graph: one } = family();
    expect([compute(one), compute(one)]).toEqual([["encode"], ["encode"]]);
    host = await GpuGraphHost.start(0);
    backend = host.place(256);
    expect(compute(family().graph)).toEqual(["encode"]);
  });
});

describe("programs for a GPU", () => {
  const PASS = 4096;
  let context: number;
  beforeEach(() => {
    const inner = host.place(128);
    host.pointer(inner + OFFSETS["webgpu_context.active_compute_pass"].at, PASS);
    host.view.setUint8(inner + OFFSETS["webgpu_context.batch_compute_passes"].at, 1);
    context = host.place(16);
    host.pointer(context, inner);
  });

  interface Entry {
    readonly buffer: number;
    readonly offset: number;
    readonly size: bigint;
    readonly texture?: number;
  }
  /** webgpu_dispatch_desc, in a std::vector. */
  function program(pipeline: number, parameters: readonly number[], entries: readonly Entry[]): number {
    const at = host.place(104);
    const words = host.place(4 * parameters.length);
    for (const [index, value] of parameters.entries()) host.view.setUint32(words + 4 * index, value, true);
    const list = host.place(56 * entries.length);
    for (const [index, { buffer: handle, offset, size, texture = 0 }] of entries.entries()) {
      const entry = list + 56 * index;
      host.view.setUint32(entry + 8, index, true);
      host.pointer(entry + 16, handle);
      host.pointer(entry + 24, offset);
      host.view.setBigUint64(entry + 32, size, true);
      host.pointer(entry + 48, texture);
    }
    host.pointer(at, pipeline);
    host.pointer(at + 48, words);
    host.pointer(at + 56, words + 4 * parameters.length);
    host.pointer(at + 72, list);
    host.pointer(at + 80, list + 56 * entries.length);
    host.view.setUint32(at + 96, 7, true);
    host.view.setUint32(at + 100, 5, true);
    const programs = host.place(24);
    host.pointer(programs, at);
    host.pointer(programs + 8, at + 104);
    return programs;
  }
  const build = (programs: number): string[] => host.run("kernel_gpu_build", context, programs);

  it("are written into the stream in order", () => {
    const buffers = [{ buffer: 64, offset: 2 ** 32 + 256, size: 2n ** 33n }];
    expect(build(program(80, [1, 2, 3], buffers))).toEqual([]);
    expect(build(program(160, [], [{ buffer: 72, offset: 0, size: 4n }]))).toEqual([]);
    const words = host.takeStream();
    expect(words.slice(0, 15)).toEqual([15, 7, 5, 3, 10, 1, 0, 8, 256, 1, 0, 2, 1, 2, 3]);
    expect(words.slice(15)).toEqual([12, 7, 5, 0, 20, 1, 0, 9, 0, 0, 4, 0]);
  });

  it("are read by the script before the stream is full", () => {
    const many = program(80, Array<number>(60).fill(1), [{ buffer: 64, offset: 0, size: 4n }]);
    let flushes = 0;
    for (let times = 0; times < 2000; times++) flushes += build(many).length;
    expect(flushes).toBe(2);
  });

  it("with other bindings than buffers are left to llama.cpp, in order", () => {
    build(program(80, [], [{ buffer: 64, offset: 0, size: 4n }]));
    const textured = program(80, [], [{ buffer: 64, offset: 0, size: 4n, texture: 8 }]);
    expect(build(textured)).toEqual(["flush", "build"]);
    expect(build(program(80, Array<number>(65).fill(1), []))).toEqual(["build"]);
  });

  it("of a pass that never ended do not run in the next one", () => {
    const one = program(80, [], [{ buffer: 64, offset: 0, size: 4n }]);
    build(one);
    host.pointer(Number(host.view.getBigUint64(context, true)) + 80, PASS + 64);
    build(one);
    expect(host.takeStream()).toHaveLength(12);
  });
});
