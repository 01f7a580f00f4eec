import { beforeEach, expect, test } from "vitest";
import { skipIdleWaits } from "../../../../../src/engine/gpu/calls/skip-idle-waits.ts";
import { type RecordedWebGpu, recordWebGpu } from "./recorded-webgpu.ts";

let webGpu: RecordedWebGpu;

beforeEach(() => {
  webGpu = recordWebGpu();
  skipIdleWaits(webGpu);
});

/** How many waits Dawn was asked for. */
function waits(): number {
  return webGpu.calls.filter(([name]) => name === "onSubmittedWorkDone").length;
}

test("nothing is waited for when nothing was submitted, though tensors were written", async () => {
  const queue = webGpu.GPUQueue.prototype;
  queue.writeBuffer({}, 0, new Uint8Array(8), 0, 8);
  await queue.onSubmittedWorkDone();
  expect(waits()).toBe(0);
});

test("work that was submitted is waited for once it is needed, and once", async () => {
  const queue = webGpu.GPUQueue.prototype;
  queue.submit([]);
  const order: string[] = [];
  const waited = queue.onSubmittedWorkDone().then(() => order.push("waited"));
  await Promise.resolve();
  order.push("finished");
  webGpu.finishWork();
  await waited;
  expect(order).toEqual(["finished", "waited"]);
  await queue.onSubmittedWorkDone();
  expect(waits()).toBe(1);
});

test("work that is submitted while another wait runs is not taken to be done with it", async () => {
  const queue = webGpu.GPUQueue.prototype;
  queue.submit([]);
  const first = queue.onSubmittedWorkDone();
  queue.submit([]);
  webGpu.finishWork();
  await first;
  const second = queue.onSubmittedWorkDone();
  expect(waits()).toBe(2);
  webGpu.finishWork();
  await second;
});

test("a model that is being loaded is waited for now and then", async () => {
  const queue = webGpu.GPUQueue.prototype;
  const weights = new Uint8Array(800_000);
  for (let tensor = 0; tensor < 10; tensor++) {
    queue.writeBuffer({}, 0, weights, 0, weights.length);
    const waited = queue.onSubmittedWorkDone();
    webGpu.finishWork();
    await waited;
  }
  expect(waits()).toBe(5);
});
