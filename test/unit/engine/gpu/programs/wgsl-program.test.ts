import { expect, test } from "vitest";
import {
  asPart,
  fuse,
  readProgram,
  writtenBindings,
} from "../../../../../src/engine/gpu/programs/wgsl-program.ts";

const program = (body: string, types: readonly string[] = ["array<f32>", "array<f32>"]) =>
  readProgram(`
${types.map((type, at) => `@group(0) @binding(${at}) var<storage, read_write> b${at}: ${type};`).join("\n")}
@group(0) @binding(${types.length}) var<uniform> params: Params;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) gid: vec3<u32>) { ${body} }`)!;

test.each<[string, number[]]>([
  ["let x = b0[b1[gid.x]]; if (b0[1] == x || b1[2] >= x || b1[3] != x) {}", []],
  ["b1[gid.x] = b0[gid.x];", [1]],
  ["b0[b1[2] + u32(b1[gid.x])] += 1;", [0]],
  ["b1[0]++;", [1]],
  ["b0[0].x = 1;", [0]],
  ["b0[0][1] = 1;", [0]],
  ["b1[0] <<= 2;", [1]],
  ["let p = & b1[0];", [1]],
  ["store(&b0, 1);", [0]],
  ["b0 = other;", [0]],
  // Other names that contain the name.
  ["ab0[1] = 1; b01[1] = 1; x.b1[0] = 1;", []],
])("finds the written bindings of %s", (body, written) => {
  expect(writtenBindings(program(body))).toEqual(written);
});

test("atomic bindings do not count as written", () => {
  expect(writtenBindings(program("atomicStore(&b1, 1);", ["array<f32>", "atomic<u32>"]))).toEqual([]);
});

test("reads of vectors become reads of numbers, also in nested indices", () => {
  const read = program("b1[0] = b0[u32(b0[gid.x].y)];", ["array<vec4<f32>>", "array<vec4<f32>>"]);
  const slots = new Map([
    [0, 7],
    [1, 8],
    [2, 9],
  ]);
  const code = asPart(read, "_3", slots, new Set([0]));
  expect(code).toContain("slot_8[0] = slot_7_vector_3(u32(u32(slot_7_vector_3(u32(gid.x)).y)));");
  expect(code).toContain(
    "fn slot_7_vector_3(at: u32) -> vec4<f32> { return vec4<f32>(slot_7[4u * at + 0u], slot_7[4u * at + 1u], slot_7[4u * at + 2u], slot_7[4u * at + 3u]); }",
  );
});

test("a program of one part uses the binding with numbers of workgroups", () => {
  const slots = new Map([0, 1, 2].map((binding) => [binding, binding]));
  const part = { program: program("b1[gid.x] = b0[gid.x];"), slots, vectors: new Set<number>(), rows: 0 };
  const code = fuse([{ how: "alone", parts: [0] }], [part]);
  expect(code).toContain("var<uniform> slot_3:");
  expect(code.slice(code.lastIndexOf("fn main("))).toContain("slot_3[");
});
