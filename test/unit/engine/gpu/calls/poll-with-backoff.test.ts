import { expect, test } from "vitest";
import { backoffMs, pollWithBackoff } from "../../../../../src/engine/gpu/calls/poll-with-backoff.ts";
import { recordWebGpu } from "./recorded-webgpu.ts";

test("short waits are not slept through, and no nap adds more than a hundredth to a longer one", () => {
  expect([0, 0.9, 2, 20, 50, 1e6].map(backoffMs)).toEqual([0, 0, 0.05, 0.2, 0.5, 1]);
});

test("polling goes on in a wait of any length, and for each wait anew", async () => {
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
