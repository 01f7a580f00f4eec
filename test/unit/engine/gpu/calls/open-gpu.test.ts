import { beforeEach, describe, expect, test } from "vitest";
import { backoffMs, pollWithBackoff, skipIdleWaits } from "../../../../../src/engine/gpu/calls/open-gpu.ts";
import { type RecordedWebGpu, recordWebGpu } from "./recorded-webgpu.ts";

test("short waits do not sleep, and a nap adds at most a hundredth to a longer wait", () => {
  expect([0, 0.9, 2, 20, 50, 1e6].map(backoffMs)).toEqual([0, 0, 0.05, 0.2, 0.5, 1]);
});

test("polling continues in waits of any length, and starts anew for each wait", async () => {
  const webGpu = recordWebGpu();
  const scope = { setImmediate: (poll: () => void): unknown => setImmediate(poll) };
  const { setImmediate: plain } = scope;
  pollWithBackoff(webGpu, scope);
  expect(scope.setImmediate === plain).toBe(process.platform === "win32");
  const poll = (): Promise<void> => new Promise((resolve) => scope.setImmediate(resolve));
  for (let turn = 0; turn < 50; turn++) await poll();
  webGpu.GPUQueue.prototype.submit([]);
  void webGpu.GPUQueue.prototype.onSubmittedWorkDone();
  void webGpu.GPUBuffer.prototype.mapAsync();
  for (let turn = 0; turn < 50; turn++) await poll();
  expect(webGpu.calls.map(([name]) => name)).toEqual(["submit", "onSubmittedWorkDone", "mapAsync"]);
});

describe("skip idle waits", () => {
  let skipIdleWaitsWebGpu: RecordedWebGpu;

  beforeEach(() => {
    skipIdleWaitsWebGpu = recordWebGpu();
    skipIdleWaits(skipIdleWaitsWebGpu);
  });

  /** Number of waits that Dawn got. */
  function waits(): number {
    return skipIdleWaitsWebGpu.calls.filter(([name]) => name === "onSubmittedWorkDone").length;
  }

  test("a wait without submitted work is skipped, even after writes of tensors", async () => {
    const queue = skipIdleWaitsWebGpu.GPUQueue.prototype;
    queue.writeBuffer({}, 0, new Uint8Array(8), 0, 8);
    await queue.onSubmittedWorkDone();
    expect(waits()).toBe(0);
  });

  test("submitted work is awaited once", async () => {
    const queue = skipIdleWaitsWebGpu.GPUQueue.prototype;
    queue.submit([]);
    const order: string[] = [];
    const waited = queue.onSubmittedWorkDone().then(() => order.push("waited"));
    await Promise.resolve();
    order.push("finished");
    skipIdleWaitsWebGpu.finishWork();
    await waited;
    expect(order).toEqual(["finished", "waited"]);
    await queue.onSubmittedWorkDone();
    expect(waits()).toBe(1);
  });

  test("work submitted during a wait does not count as finished by it", async () => {
    const queue = skipIdleWaitsWebGpu.GPUQueue.prototype;
    queue.submit([]);
    const first = queue.onSubmittedWorkDone();
    queue.submit([]);
    skipIdleWaitsWebGpu.finishWork();
    await first;
    const second = queue.onSubmittedWorkDone();
    expect(waits()).toBe(2);
    skipIdleWaitsWebGpu.finishWork();
    await second;
  });

  test("waits are not always skipped while a model loads", async () => {
    const queue = skipIdleWaitsWebGpu.GPUQueue.prototype;
    const weights = new Uint8Array(800_000);
    for (let tensor = 0; tensor < 10; tensor++) {
      queue.writeBuffer({}, 0, weights, 0, weights.length);
      const waited = queue.onSubmittedWorkDone();
      skipIdleWaitsWebGpu.finishWork();
      await waited;
    }
    expect(waits()).toBe(5);
  });
});
