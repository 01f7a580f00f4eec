import { beforeEach, expect, test } from "vitest";
import { fusePrograms } from "../../../../../src/engine/gpu/programs/fuse-programs.ts";
import type { FusingClasses, FusingPipeline } from "../../../../../src/engine/gpu/programs/fusible.ts";

/** Program in llama.cpp's style that writes rows of the cache, one per workgroup. */
const CACHE_WRITE = `
@group(0) @binding(0) var<storage, read_write> src: array<f32>;
@group(0) @binding(1) var<storage, read_write> idx: array<u32>;
@group(0) @binding(2) var<storage, read_write> dst: array<f32>;
@group(0) @binding(3) var<storage, read_write> error: atomic<u32>;
@group(0) @binding(4) var<uniform> params: Params;
struct Params { ne: u32 };
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) gid: vec3<u32>) {
  if (gid.x < params.ne) { dst[idx[gid.x]] = src[gid.x]; }
}`;

interface Ran {
  readonly pipeline: string;
  readonly x: number;
}

const buffer = {};
const at = (binding: number, offset: number) => ({ binding, resource: { buffer, offset, size: 256 } });
let ran: Ran[] = [];
/** Code of modules that are compiled in the background, and functions that complete them. */
let compiling: { readonly code: string; readonly end: (works: boolean) => void }[] = [];
/** Buffers that were made, and the validation error of Dawn for bind groups of fused programs. */
let buffers: object[] = [];
let groupProblem: object | null = null;
let classes: FusingClasses;
let device: FusingClasses["GPUDevice"]["prototype"];

/** Fake WebGPU: bind groups and pipelines are their descriptors. */
function fakeClasses(isFallbackAdapter: boolean): FusingClasses {
  let set = "";
  /** Object that was made in the open error scope. */
  let made = "";
  const prototype = {
    adapterInfo: { isFallbackAdapter },
    limits: { maxStorageBuffersPerShaderStage: 8, maxComputeWorkgroupsPerDimension: 65_535 },
    queue: { writeBuffer: () => {} },
    createShaderModule: ({ code }: { code: string }) => ({ code }),
    createBuffer: () => {
      buffers.push({});
      return buffers.at(-1)!;
    },
    createBindGroup: () => {
      made = "group";
      return {};
    },
    createComputePipeline: () => ({ name: "own", getBindGroupLayout: () => ({}) }),
    createComputePipelineAsync: ({ compute }: { compute: { module: object } }) =>
      new Promise<{ getBindGroupLayout: () => object }>((resolve, reject) => {
        const end = (works: boolean): void => {
          if (works) resolve(Object.assign({ name: "fused" }, { getBindGroupLayout: () => ({}) }));
          else reject(new Error("refused"));
        };
        compiling.push({ code: String(Reflect.get(compute.module, "code")), end });
      }),
    pushErrorScope: () => {
      made = "";
    },
    popErrorScope: async () => (made === "group" ? groupProblem : null),
  };
  const pass = {
    setPipeline: (pipeline: object) => {
      set = String(Reflect.get(pipeline, "name"));
    },
    setBindGroup: () => {},
    dispatchWorkgroups: (x: number) => void ran.push({ pipeline: set, x }),
    end: () => {},
  };
  return { GPUDevice: { prototype }, GPUComputePassEncoder: { prototype: pass } };
}

function open(isFallbackAdapter = false): void {
  ran = [];
  compiling = [];
  buffers = [];
  groupProblem = null;
  classes = fakeClasses(isFallbackAdapter);
  fusePrograms(classes);
  device = classes.GPUDevice.prototype;
}

beforeEach(() => open());

function compileWrite(): FusingPipeline {
  const module = device.createShaderModule({ code: CACHE_WRITE });
  return device.createComputePipeline({ layout: "auto", compute: { module } });
}

function writeTo(offset: number, pipeline = compileWrite()): { pipeline: FusingPipeline; group: object } {
  // Their sources follow the caches; all count errors in the same buffer.
  const entries = [at(0, 4096 + offset), at(1, 8192 + offset), at(2, offset), at(3, 16_384), at(4, 32_768)];
  return { pipeline, group: device.createBindGroup({ layout: {}, entries }) };
}

/** Runs programs in one pass; returns what WebGPU ran. */
function run(...programs: readonly { pipeline: FusingPipeline; group: object; x?: number }[]): Ran[] {
  ran = [];
  const pass = { ...classes.GPUComputePassEncoder.prototype };
  for (const { pipeline, group, x = 2 } of programs) {
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group);
    pass.dispatchWorkgroups(x);
  }
  pass.end();
  return ran;
}

/** Runs a list in a separate pass; returns what WebGPU ran. */
function runList(list: readonly { pipeline: FusingPipeline; group: object; x: number; y: number }[]): Ran[] {
  ran = [];
  const pass = { ...classes.GPUComputePassEncoder.prototype };
  pass.dispatchAll?.(device.fusedDispatches?.(list) ?? []);
  pass.end();
  return ran;
}

async function compiled(works: boolean): Promise<void> {
  // Its module is checked first.
  await expect.poll(() => compiling.length).toBe(1);
  compiling[0]?.end(works);
  await new Promise((resolve) => setImmediate(resolve));
}

test("two repeated writes run as one program when it is compiled", async () => {
  const [key, value] = [writeTo(0), writeTo(256)];
  const own = [
    { pipeline: "own", x: 2 },
    { pipeline: "own", x: 2 },
  ];
  expect(run(key, value)).toEqual(own);
  expect(run(key, value)).toEqual(own);
  await compiled(true);
  expect(run(key, value)).toEqual([{ pipeline: "fused", x: 4 }]);
  const [{ code } = { code: "" }] = compiling;
  // Both count errors in one buffer, and have separate parameters.
  expect(code.match(/@binding\(\d+\) var<storage/g)).toHaveLength(7);
  expect(code).toContain("fn main_0(");
  expect(code).toContain("fn main_1(");
});

test("two writes are not fused before other programs, or with other numbers of workgroups", async () => {
  const [key, value] = [writeTo(0), writeTo(256)];
  run(key, value);
  run(key, value);
  await compiled(true);
  expect(run(key, { ...value, x: 3 }).map(({ pipeline }) => pipeline)).toEqual(["own", "own"]);
  expect(run(key)).toEqual([{ pipeline: "own", x: 2 }]);
  expect(run(key, value)).toEqual([{ pipeline: "fused", x: 4 }]);
});

test("programs that fail to compile are not fused", async () => {
  const [key, value] = [writeTo(0), writeTo(256)];
  run(key, value);
  run(key, value);
  await compiled(false);
  expect(run(key, value)).toHaveLength(2);
  expect(compiling).toHaveLength(1);
});

test("programs without a valid bind group are not fused", async () => {
  const [key, value] = [writeTo(0), writeTo(256)];
  groupProblem = new Error("the layout has other bindings");
  run(key, value);
  run(key, value);
  await compiled(true);
  expect(run(key, value)).toHaveLength(2);
});

test("programs of all layers with the same numbers of workgroups share one buffer for them", async () => {
  const pipeline = compileWrite();
  const layers = [0, 1024, 2048].map((offset) => [
    writeTo(offset, pipeline),
    writeTo(offset + 256, pipeline),
  ]);
  for (const _ of [1, 2]) for (const [key, value] of layers) run(key!, value!);
  await compiled(true);
  for (const [key, value] of layers) expect(run(key!, value!)).toEqual([{ pipeline: "fused", x: 4 }]);
  expect(buffers).toHaveLength(1);
  const [key, value] = layers[0]!;
  for (const _ of [1, 2, 3]) run(key!, { ...value!, x: 3 });
  await expect.poll(() => run(key!, { ...value!, x: 3 })).toEqual([{ pipeline: "fused", x: 5 }]);
  expect(buffers).toHaveLength(2);
});

test("programs are not fused if they depend on each other, are used once, or run on a software adapter", async () => {
  // The second writes a buffer that the first reads.
  const [first, second] = [writeTo(0), writeTo(4096)];
  for (const _ of [1, 2, 3]) run(first, second);
  run(writeTo(0), writeTo(256));
  open(true);
  const [key, value] = [writeTo(0), writeTo(256)];
  for (const _ of [1, 2, 3]) run(key, value);
  await new Promise((resolve) => setImmediate(resolve));
  expect(compiling).toEqual([]);
});

test("a repeated list is replaced by its fused programs when they are compiled", async () => {
  const list = [
    { ...writeTo(0), x: 2, y: 1 },
    { ...writeTo(256), x: 3, y: 1 },
  ];
  const own = [
    { pipeline: "own", x: 2 },
    { pipeline: "own", x: 3 },
  ];
  expect(runList(list)).toEqual(own);
  expect(runList(list)).toEqual(own);
  expect(runList(list)).toEqual(own);
  await compiled(true);
  expect(runList(list)).toEqual([{ pipeline: "fused", x: 5 }]);
  // Another list of the same programs, and the programs one by one.
  expect(runList(list.slice(0, 1))).toEqual(own.slice(0, 1));
  expect(run(...list)).toEqual([{ pipeline: "fused", x: 5 }]);
  expect(runList(list)).toEqual([{ pipeline: "fused", x: 5 }]);
});

test("a list runs after earlier dispatches of the pass", () => {
  const [key, value] = [writeTo(0), writeTo(256)];
  ran = [];
  const pass = { ...classes.GPUComputePassEncoder.prototype };
  pass.setPipeline(key.pipeline);
  pass.setBindGroup(0, key.group);
  pass.dispatchWorkgroups(1);
  pass.dispatchAll?.([{ ...value, x: 5, y: 1 }]);
  pass.end();
  expect(ran.map(({ x }) => x)).toEqual([1, 5]);
});
