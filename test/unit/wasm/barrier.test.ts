import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { afterEach, describe, expect, it, vi } from "vitest";
import { hostMemory, linkHost } from "../../support/kernel-host-module.ts";

const PAGES = 32;
const POOL = 1024 * 1024;
/** ggml_threadpool.n_graph: the number of threads. */
const THREADS_AT = POOL + 104;
/** One number per thread, written only by that thread. */
const SLOTS_AT = POOL + 1024;
/** Offset as in wasm/kernels/barrier.h. */
const SLEEPERS_AT = 32;

/** Thread that increments its number, waits at the barrier, and checks that all others have incremented theirs. */
const THREAD = `
  const { workerData, parentPort } = require("node:worker_threads");
  const { module, memory, pool, slots, index, threads, steps } = workerData;
  const { barrier } = new WebAssembly.Instance(module, { env: { memory } }).exports;
  const numbers = new Int32Array(memory.buffer, slots, threads);
  let early = 0;
  for (let step = 1; step <= steps; step++) {
    Atomics.store(numbers, index, step);
    barrier(BigInt(pool));
    for (let other = 0; other < threads; other++) if (Atomics.load(numbers, other) < step) early++;
  }
  parentPort.postMessage({ early });
`;

const workers: Worker[] = [];
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.terminate()));
});

async function makePool(threads: number) {
  const module = await WebAssembly.compile(linkHost(PAGES, true));
  const memory = hostMemory(PAGES, { shared: true });
  const numbers = new Int32Array(memory.buffer);
  numbers[THREADS_AT / 4] = threads;
  const start = (index: number, steps: number): Promise<unknown> => {
    const workerData = { module, memory, pool: POOL, slots: SLOTS_AT, index, threads, steps };
    const worker = new Worker(THREAD, { eval: true, workerData });
    workers.push(worker);
    return once(worker, "message").then(([message]: unknown[]) => message);
  };
  const { exports } = await WebAssembly.instantiate(module, { env: { memory } });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const barrier = exports["barrier"] as (pool: bigint) => void;
  return { numbers, start, arrive: () => barrier(BigInt(POOL)) };
}

describe("the barrier of the threads of one operator", () => {
  it.each([2, 3, 5])("blocks all of %i threads until the last has arrived", async (threads) => {
    const { start, numbers } = await makePool(threads);
    const reports = await Promise.all(Array.from({ length: threads }, (_, index) => start(index, 500)));
    expect(reports).toEqual(reports.map(() => ({ early: 0 })));
    expect(numbers[SLEEPERS_AT / 4]).toBe(0);
  });

  it("does not block a single thread", async () => {
    const { start } = await makePool(1);
    expect(await start(0, 10)).toEqual({ early: 0 });
  });

  it("lets threads sleep while one is late, and wakes all of them", async () => {
    const { start, arrive, numbers } = await makePool(3);
    const reports = Promise.all([start(0, 1), start(1, 1)]);
    await vi.waitFor(() => expect(Atomics.load(numbers, SLEEPERS_AT / 4)).toBe(2), { timeout: 30_000 });
    numbers[SLOTS_AT / 4 + 2] = 1;
    arrive();
    expect(await reports).toEqual([{ early: 0 }, { early: 0 }]);
    expect(numbers[SLEEPERS_AT / 4]).toBe(0);
  });
});
