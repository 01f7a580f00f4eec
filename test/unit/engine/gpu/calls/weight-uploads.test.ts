import { beforeEach, describe, expect, it } from "vitest";
import { openWeightUploads, type WeightUploads } from "../../../../../src/engine/gpu/calls/weight-uploads.ts";

const CELLS = { gpuUploads: 8, uploadFrom: 16, uploadedBytes: 24 };
const FROM = 4096;

let heap: BigUint64Array<ArrayBuffer>;
let uploads: WeightUploads;
let log: string[];
let finish: (() => void)[];
const buffer = { name: "weights" };
const queue = {
  writeBuffer: (_to: object, at: number, data: Uint8Array, offset: number, size: number): void => {
    log.push(`${at}: ${Array.from(data.subarray(offset, offset + size)).join(" ")}`);
  },
  onSubmittedWorkDone: (): Promise<void> => new Promise((resolve) => finish.push(resolve)),
};

beforeEach(() => {
  heap = new BigUint64Array(64);
  log = [];
  finish = [];
  uploads = openWeightUploads({ cells: CELLS, words: () => new Uint32Array(heap.buffer) });
});

/** Sets the cells as the kernels do before they read a tensor. */
function offer(size: number): void {
  heap[CELLS.uploadFrom / 8] = BigInt(FROM);
  heap[CELLS.uploadedBytes / 8] = 0n;
  expect(uploads.note(queue, buffer, 100, FROM, size)).toBe(true);
}
const uploaded = (): bigint | undefined => heap[CELLS.uploadedBytes / 8];
const piece = (length: number): Uint8Array => new Uint8Array(length).fill(7);

describe("weights for a GPU", () => {
  it("are written in sequence while they are read, each after the one before", async () => {
    offer(12);
    expect(await uploads.send(piece(8), FROM)).toBe(8);
    const second = uploads.send(piece(4), FROM + 8);
    await Promise.resolve();
    expect(log).toEqual(["100: 7 7 7 7 7 7 7 7"]);
    finish[0]?.();
    expect(await second).toBe(4);
    expect(log[1]).toBe("108: 7 7 7 7");
    expect(uploaded()).toBe(12n);
  });

  it("end with the tensor, and leave bytes of an incomplete word to the heap", async () => {
    offer(8);
    expect(await uploads.send(piece(11), FROM)).toBe(8);
    finish[0]?.();
    expect(await uploads.send(piece(4), FROM + 8)).toBe(0);
    expect(uploaded()).toBe(8n);
    expect(log).toHaveLength(1);
  });

  it("are not uploaded from the middle of a tensor", async () => {
    offer(16);
    expect(await uploads.send(piece(8), FROM + 8)).toBe(0);
    expect(uploaded()).toBe(0n);
  });

  it("do not include the next tensor, which stays in the heap", async () => {
    offer(16);
    expect(await uploads.send(piece(8), FROM + 8)).toBe(0);
    heap[CELLS.uploadFrom / 8] = 0n;
    expect(uploads.note(queue, buffer, 100, FROM, 16)).toBe(false);
    heap[CELLS.uploadFrom / 8] = BigInt(FROM);
    expect(await uploads.send(piece(16), FROM)).toBe(0);
    expect(log).toEqual([]);
  });

  it("go to the heap for a tensor without a recorded destination", async () => {
    heap[CELLS.uploadFrom / 8] = BigInt(FROM);
    expect(await uploads.send(piece(8), FROM)).toBe(0);
    heap[CELLS.uploadFrom / 8] = 0n;
    expect(uploads.note(queue, buffer, 0, 0, 8)).toBe(false);
    expect(uploads.note(queue, buffer, 0, FROM, 8)).toBe(false);
    expect(log).toEqual([]);
  });

  it("are enabled when the engine opens a GPU", () => {
    expect(heap[1]).toBe(0n);
    uploads.begin();
    expect(heap[1]).toBe(1n);
  });
});
