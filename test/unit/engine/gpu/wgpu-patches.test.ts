import fs from "node:fs";
import { fileURLToPath } from "node:url";
import vm from "node:vm";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { applyPatches } from "../../../../src/engine/core/worker-patches.ts";
import { commandStreamPatches, queueWaitPatches } from "../../../../src/engine/gpu/wgpu-patches.ts";

/** File of the package that contains its scripts as texts. */
const SCRIPTS = fileURLToPath(
  new URL("../../../../node_modules/@wllama/wllama/esm/index.js", import.meta.url),
);

test("the patches of the command stream apply together with the others", () => {
  const script = fs.readFileSync(SCRIPTS, "utf8");
  const patched = applyPatches(script, [...queueWaitPatches(1), ...commandStreamPatches(true)]);
  expect(patched.match(/daybreakStream\.unexpected\(\)/g)).toHaveLength(4);
  expect(patched.match(/daybreakStream\.forget\(\)/g)).toHaveLength(3);
  expect(patched).toContain("maxRecordings:12");
  expect(applyPatches(script, commandStreamPatches(false))).toContain("maxRecordings:0");
});

/** llama.cpp's function that waits for a GPU, found between its neighbors. */
const WAIT_ANY = /var _emwgpuWaitAny=function.*?;(?=_emwgpuWaitAny\.isAsync)/s;

type WaitAny = (futures: bigint, count: bigint, timeout: bigint) => Promise<number>;

/** The patched function, the id of a future that never completes, and of one that has completed. */
function waitAny(longestMs: number, timeoutMs: number): { wait: WaitAny; end: () => void } {
  const script = fs.readFileSync(SCRIPTS, "utf8");
  const [source = ""] = WAIT_ANY.exec(applyPatches(script, queueWaitPatches(longestMs))) ?? [];
  const { promise, resolve } = Promise.withResolvers<number>();
  const scope = {
    setTimeout,
    clearTimeout,
    HEAP32: Int32Array.of(timeoutMs, timeoutMs),
    growMemViews: () => {},
    bigintToI53Checked: Number,
    readI53FromI64: () => 7,
    Asyncify: { handleAsync: async (run: () => Promise<number>) => await run() },
    WebGPU: { Internals: { futures: { 7: promise } } },
  };
  return { wait: vm.runInNewContext(`${source};_emwgpuWaitAny`, scope), end: () => resolve(7) };
}

async function outcome(wait: Promise<number>, afterMs: number): Promise<unknown> {
  let settled: unknown = "waits";
  void wait.then((value) => (settled = value));
  await vi.advanceTimersByTimeAsync(afterMs);
  return settled;
}

describe("queue wait patches", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  test("a wait for the GPU ends at the configured limit instead of llama.cpp's 30 s", async () => {
    const { wait } = waitAny(100_000, 30_000);
    const waiting = wait(0n, 1n, 4n);
    expect(await outcome(waiting, 99_999)).toBe("waits");
    expect(await outcome(waiting, 1)).toBe(undefined);
  });

  test("a wait for the GPU without a limit lasts for weeks", async () => {
    const { wait } = waitAny(Number.POSITIVE_INFINITY, 30_000);
    expect(await outcome(wait(0n, 1n, 4n), 20 * 24 * 60 * 60 * 1000)).toBe("waits");
  });

  test("other waits of llama.cpp do not change", async () => {
    const { wait } = waitAny(100_000, 10);
    expect(await outcome(wait(0n, 1n, 4n), 10)).toBe(undefined);
  });

  test("a finished wait clears its timer", async () => {
    const { wait, end } = waitAny(100_000, 30_000);
    const waiting = wait(0n, 1n, 4n);
    end();
    expect(await outcome(waiting, 0)).toBe(7);
    expect(vi.getTimerCount()).toBe(0);
  });
});
