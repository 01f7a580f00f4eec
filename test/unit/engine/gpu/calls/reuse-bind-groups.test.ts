import { beforeEach, expect, test } from "vitest";
import { reuseBindGroups } from "../../../../../src/engine/gpu/calls/reuse-bind-groups.ts";
import { type RecordedWebGpu, recordWebGpu } from "./recorded-webgpu.ts";

let webGpu: RecordedWebGpu;

beforeEach(() => {
  webGpu = recordWebGpu();
  reuseBindGroups(webGpu);
});

const weights = {};
const results = {};

function group(layout: object, ...entries: [buffer: object, offset: number, size: number][]): object {
  return webGpu.GPUDevice.prototype.createBindGroup({
    layout,
    entries: entries.map(([buffer, offset, size], binding) => ({
      binding,
      resource: { buffer, offset, size },
    })),
  });
}

test("the same bind group is made once", () => {
  const layout = {};
  const first = group(layout, [weights, 256, 64], [results, 0, 128]);
  expect(group(layout, [weights, 256, 64], [results, 0, 128])).toBe(first);
  expect(webGpu.calls).toHaveLength(1);
});

test("bind groups that differ in anything are different ones", () => {
  const layout = {};
  const made = new Set([
    group(layout, [weights, 256, 64], [results, 0, 128]),
    group({}, [weights, 256, 64], [results, 0, 128]),
    group(layout, [results, 256, 64], [results, 0, 128]),
    group(layout, [weights, 512, 64], [results, 0, 128]),
    group(layout, [weights, 256, 32], [results, 0, 128]),
    group(layout, [weights, 256, 64]),
  ]);
  expect(made.size).toBe(6);
});

test("what holds other things than buffers is left to Dawn", () => {
  const descriptor = { layout: {}, entries: [{ binding: 0, resource: {} }] };
  const { prototype } = webGpu.GPUDevice;
  expect(prototype.createBindGroup(descriptor)).not.toBe(prototype.createBindGroup(descriptor));
});

test("a pipeline's layouts are asked for once, each", () => {
  const { getBindGroupLayout } = webGpu.GPUComputePipeline.prototype;
  const pipeline = {};
  const first: unknown = Reflect.apply(getBindGroupLayout, pipeline, [0]);
  expect(Reflect.apply(getBindGroupLayout, pipeline, [0])).toBe(first);
  expect(Reflect.apply(getBindGroupLayout, pipeline, [1])).not.toBe(first);
  expect(Reflect.apply(getBindGroupLayout, {}, [0])).not.toBe(first);
  expect(webGpu.calls).toHaveLength(3);
});

test("bind groups are not kept without end", () => {
  const layout = {};
  const first = group(layout, [weights, 0, 4]);
  for (let offset = 4; offset < 40_000; offset += 4) group(layout, [weights, offset, 4]);
  expect(group(layout, [weights, 0, 4])).not.toBe(first);
});
