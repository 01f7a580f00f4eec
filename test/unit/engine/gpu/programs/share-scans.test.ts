import { beforeEach, expect, test } from "vitest";
import type { Dispatch } from "../../../../../src/engine/gpu/programs/fusible.ts";
import {
  createScanSharing,
  type ScannedDispatch,
} from "../../../../../src/engine/gpu/programs/share-scans.ts";
import { readProgram } from "../../../../../src/engine/gpu/programs/wgsl-program.ts";

/** Scan of a mask before attention, like that of llama.cpp. */
const SCAN = readProgram(`
@group(0) @binding(0) var<storage, read_write> mask: array<f16>;
@group(0) @binding(1) var<storage, read_write> blk: array<u32>;
@group(0) @binding(2) var<uniform> params: Params;
var<workgroup> wg_any: array<u32, 32>;
@compute @workgroup_size(32)
fn main(@builtin(workgroup_id) wg: vec3<u32>) { blk[wg.x] = u32(mask[wg.x]); }`)!;

const memory = { name: "memory" };
const parameters = { name: "parameters" };
const range = (binding: number, offset: number, size: number, buffer: object = memory) => ({
  binding,
  resource: { buffer, offset, size },
});
const pipelineOf = (name: string) => ({ name, getBindGroupLayout: () => ({}) });
const SCANS = pipelineOf("scan");
const ATTENDS = pipelineOf("attention");
const OTHER = pipelineOf("other");

let known: Map<object, ScannedDispatch>;
let made: object[];
let device: ScannedDispatch["device"];
let share: ReturnType<typeof createScanSharing>;

beforeEach(() => {
  known = new Map();
  made = [];
  device = {
    createBuffer: () => {
      const buffer = { name: `states ${made.length}` };
      made.push(buffer);
      return buffer;
    },
    createBindGroup: ({ entries }: { entries: ScannedDispatch["entries"] }) => ({ entries }),
  };
  share = createScanSharing(({ group }) => known.get(group));
});

function dispatch(
  pipeline: Dispatch["pipeline"],
  entries: ScannedDispatch["entries"],
  writes: number[],
): Dispatch {
  const group = { entries };
  known.set(group, { device, program: SCAN, writes, entries });
  if (pipeline !== SCANS) known.set(group, { device, program: { ...SCAN, names: [] }, writes, entries });
  return { pipeline, group, x: 4, y: 1 };
}

const scan = (mask = 0, states = 4096, params = 0): Dispatch =>
  dispatch(SCANS, [range(0, mask, 64), range(1, states, 16), range(2, params, 256, parameters)], [1]);
const attention = (mask = 0, states = 4096, writes = [2]): Dispatch =>
  dispatch(ATTENDS, [range(0, mask, 64), range(1, states, 16), range(2, 8192, 64)], writes);
const other = (at: number): Dispatch => dispatch(OTHER, [range(0, at, 64)], [0]);

const names = (list: readonly Dispatch[]): string[] =>
  list.map(({ pipeline }) => String(Reflect.get(pipeline, "name")));
const states = (one: Dispatch | undefined): unknown => Reflect.get(one?.group ?? {}, "entries")[1].resource;

test("a mask is scanned once for all layers, independent of llama.cpp's buffers for the results", () => {
  const list = share([scan(), attention(), other(4096), scan(0, 6144), attention(0, 6144), other(1024)]);
  expect(names(list)).toEqual(["scan", "attention", "other", "attention", "other"]);
  expect(made).toHaveLength(1);
  const found = { buffer: made[0], offset: 0, size: 16 };
  expect([list[0], list[1], list[3]].map(states)).toEqual([found, found, found]);
});

test("two masks are scanned once each", () => {
  const layers = [0, 512, 0, 512].flatMap((mask) => [scan(mask), attention(mask)]);
  const list = share(layers);
  expect(names(list)).toEqual(["scan", "attention", "scan", "attention", "attention", "attention"]);
  expect(list.map(states).map((each) => made.indexOf(Reflect.get(Object(each), "buffer")))).toEqual([
    0, 0, 1, 1, 0, 1,
  ]);
});

test.each<[string, () => Dispatch[]]>([
  ["the mask was written", () => [scan(), attention(), other(32), scan(), attention()]],
  ["attention wrote the mask", () => [scan(), attention(0, 4096, [0, 2]), scan(), attention()]],
  [
    "something unknown ran",
    () => [scan(), attention(), { pipeline: OTHER, group: {}, x: 1, y: 1 }, scan(), attention()],
  ],
  ["the parameters are others", () => [scan(), attention(), scan(0, 4096, 256), attention()]],
  ["there are more workgroups", () => [scan(), attention(), { ...scan(), x: 8 }, attention()]],
])("a mask is scanned again when %s", (_what, list) => {
  expect(names(share(list())).filter((name) => name === "scan")).toHaveLength(2);
});

test("the result stays in llama.cpp's buffer if the next program does not only read it", () => {
  const lists = [
    [scan(), attention(0, 4096, [1, 2]), scan(), attention(0, 4096, [1, 2])],
    [scan(), other(0), scan(), other(0)],
    // A second program reads it: after the attention, or after a write to another buffer.
    [scan(), attention(), attention()],
    [scan(), attention(), other(1024), attention(), scan(0, 6144)],
    [scan(), attention(0, 4100), scan(), attention(0, 4100)],
    [scan()],
  ];
  for (const list of lists) expect(share(list)).toEqual(list);
  expect(made).toEqual([]);
});

test("bind groups and buffers are made once", () => {
  const list = [scan(), attention(), scan(), attention()];
  const first = share(list);
  const second = share(list);
  expect(second.map(({ group }, at) => group === first[at]?.group)).toEqual([true, true, true]);
  expect(made).toHaveLength(1);
});

/** A scan with a result of this size, and the attention after it. */
const sized = (size: number): Dispatch[] => [
  dispatch(SCANS, [range(0, 0, 64), range(1, 4096, size), range(2, 0, 256, parameters)], [1]),
  dispatch(ATTENDS, [range(0, 0, 64), range(1, 4096, size), range(2, 8192, 64)], [2]),
];

test("a longer mask gets a larger buffer, which shorter ones reuse", () => {
  const used = [16, 32, 16, 24].map((size) => states(share(sized(size))[0]));
  expect(made).toHaveLength(2);
  expect(used).toEqual([
    { buffer: made[0], offset: 0, size: 16 },
    { buffer: made[1], offset: 0, size: 32 },
    { buffer: made[1], offset: 0, size: 16 },
    { buffer: made[1], offset: 0, size: 24 },
  ]);
});

test("a result that is no longer read may be partly overwritten", () => {
  const list = share([scan(), attention(), other(4096 + 8), attention()]);
  expect(names(list)).toEqual(["scan", "attention", "other", "attention"]);
  expect(made).toHaveLength(1);
});
