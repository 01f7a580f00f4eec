import { beforeEach, expect, test } from "vitest";
import { gatherParameters } from "../../../../../src/engine/gpu/calls/gather-parameters.ts";
import { type RecordedWebGpu, recordWebGpu } from "./recorded-webgpu.ts";

const UNIFORM_AND_COPY_DST = 72;
const STORAGE_AND_COPY_DST = 136;

let webGpu: RecordedWebGpu;

beforeEach(() => {
  webGpu = recordWebGpu();
  gatherParameters(webGpu);
});

function create(usage: number, size = 64): object {
  const buffer = webGpu.GPUDevice.prototype.createBuffer({ usage, size });
  webGpu.calls.length = 0;
  return buffer;
}

function write(buffer: object, at: number, ...bytes: number[]): void {
  webGpu.GPUQueue.prototype.writeBuffer(buffer, at, Uint8Array.from([9, 9, ...bytes]), 2, bytes.length);
}

/** What Dawn has been told to write: where, and which bytes. */
function written(): [at: unknown, bytes: number[]][] {
  return webGpu.calls.flatMap(([name, _buffer, at, data, offset, size]) =>
    name === "writeBuffer" && data instanceof Uint8Array
      ? [[at, [...data.subarray(Number(offset), Number(offset) + Number(size))]]]
      : [],
  );
}

test("the parameters of several programs are written in one call, before they are submitted", () => {
  const buffer = create(UNIFORM_AND_COPY_DST);
  write(buffer, 8, 1, 2);
  write(buffer, 12, 3, 4);
  write(buffer, 8, 5);
  expect(webGpu.calls).toEqual([]);
  webGpu.GPUQueue.prototype.submit([]);
  expect(written()).toEqual([[8, [5, 2, 0, 0, 3, 4]]]);
  expect(webGpu.calls.map(([name]) => name)).toEqual(["writeBuffer", "submit"]);
});

test("what has been written stays as it is when the next parameters are", () => {
  const buffer = create(UNIFORM_AND_COPY_DST);
  write(buffer, 0, 1, 2, 3, 4);
  webGpu.GPUQueue.prototype.submit([]);
  write(buffer, 0, 7);
  write(buffer, 3, 8);
  webGpu.GPUQueue.prototype.submit([]);
  webGpu.GPUQueue.prototype.submit([]);
  expect(written()).toEqual([
    [0, [1, 2, 3, 4]],
    [0, [7, 2, 3, 8]],
  ]);
});

test("buffers that a shader may change are written at once", () => {
  write(create(STORAGE_AND_COPY_DST), 4, 1, 2);
  expect(written()).toEqual([[4, [1, 2]]]);
});

test("a write past the end is left for Dawn to refuse", () => {
  write(create(UNIFORM_AND_COPY_DST, 4), 3, 1, 2);
  expect(written()).toEqual([[3, [1, 2]]]);
});

test("from a copy into it on, a buffer is written at once", () => {
  const buffer = create(UNIFORM_AND_COPY_DST);
  write(buffer, 0, 1);
  webGpu.GPUCommandEncoder.prototype.copyBufferToBuffer({}, 0, buffer, 0, 4);
  write(buffer, 0, 2);
  expect(webGpu.calls.map(([name]) => name)).toEqual(["writeBuffer", "copyBufferToBuffer", "writeBuffer"]);
  expect(written()).toEqual([
    [0, [1]],
    [0, [2]],
  ]);
});

test("what was to be written into a buffer that is destroyed is not", () => {
  const buffer = create(UNIFORM_AND_COPY_DST);
  write(buffer, 0, 1);
  Reflect.apply(webGpu.GPUBuffer.prototype.destroy, buffer, []);
  webGpu.GPUQueue.prototype.submit([]);
  expect(written()).toEqual([]);
});
