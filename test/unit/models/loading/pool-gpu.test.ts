import { describe, expect, it } from "vitest";
import { settle } from "../../../support/fake-clock.ts";
import { loadPlan as plan } from "./load-plans.ts";
import { release, leaseAndReturn, makePool, MB, NEVER } from "./make-pool.ts";

/** A plan for the GPU with 50 MiB; on the CPU it would take 60. */
const PLANNED = {
  bytes: 10 * MB,
  gpuBytes: 50 * MB,
  needsOf: () => ({ bytes: 60 * MB, gpuBytes: 0 }),
};
const { spec: ON_CPU } = plan();

describe("an engine that needs another specification than planned", () => {
  it("has its actual memory reserved", async () => {
    const { pool, engines } = makePool();
    engines.manual = true;
    const loading = pool.load("a", plan(PLANNED));
    await settle();
    await engines.starts[0]?.freeContext?.(ON_CPU);
    engines.starts[0]?.succeed();
    await loading;

    expect(pool.memory.takenOnGpu("b", false)).toBe(0);
    await expect(pool.load("b", plan({ bytes: 60 * MB, mayEvict: false }))).rejects.toMatchObject({
      code: "insufficient_memory",
      message: expect.stringMatching(/40 MiB of 100 MiB/),
    });
  });

  it("evicts idle models, and waits until they have ended", async () => {
    const { pool, engines, events } = makePool();
    await leaseAndReturn(pool, "idle", { bytes: 50 * MB });
    const { promise, resolve } = Promise.withResolvers<void>();
    engines.last.untilEnded = promise;
    engines.manual = true;
    const loading = pool.load("a", plan(PLANNED));
    await settle();
    let isReserved = false;
    const reservation = engines.starts[1]?.freeContext?.(ON_CPU).then(() => (isReserved = true));
    await settle();
    expect(pool.model("idle")?.state).toBe("unloading");
    expect(isReserved).toBe(false);

    resolve();
    await reservation;
    engines.starts[1]?.succeed();
    await loading;
    expect(events).toContainEqual({ type: "model-unloaded", model: "idle", reason: "memory" });
  });

  it("is not started if its memory is not available", async () => {
    const { pool, engines } = makePool();
    const busy = await pool.lease("busy", async () => plan({ bytes: 50 * MB }), NEVER);
    engines.manual = true;
    const loading = pool.load("a", plan(PLANNED));
    await settle();
    const start = engines.starts[1];
    await start?.freeContext?.(ON_CPU).catch((error: unknown) => start.fail(error));

    await expect(loading).rejects.toMatchObject({
      code: "overloaded",
      message: expect.stringMatching(/60 MiB.*50 MiB of 100 MiB/),
    });
    expect(pool.model("a")).toBeUndefined();
    release(busy);
  });

  it("is planned for the GPU again after a crash", async () => {
    const { pool, engines } = makePool();
    engines.manual = true;
    const loading = pool.load("a", plan(PLANNED));
    await settle();
    await engines.starts[0]?.freeContext?.(ON_CPU);
    const engine = engines.starts[0]?.succeed();
    await loading;
    await engine?.crash();
    engines.manual = false;
    release(await pool.lease("a", async () => plan(), NEVER));
    expect(pool.memory.takenOnGpu("b", false)).toBe(50 * MB);
  });
});

describe("GPU memory", () => {
  it("is left to other models, except for idle ones that may be evicted", async () => {
    const { pool, engines } = makePool();
    await leaseAndReturn(pool, "idle", { gpuBytes: 10 * MB });
    const busy = await pool.lease("busy", async () => plan({ gpuBytes: 20 * MB }), NEVER);
    engines.manual = true;
    const loading = pool.load("loading", plan({ gpuBytes: 30 * MB }));
    await settle();
    expect(pool.memory.takenOnGpu("new", false)).toBe(60 * MB);
    expect(pool.memory.takenOnGpu("new", true)).toBe(50 * MB);
    // The memory of a model that is loaded again counts as free.
    expect(pool.memory.takenOnGpu("busy", false)).toBe(40 * MB);
    engines.starts[2]?.succeed();
    await loading;
    release(busy);
    await pool.unload("busy", "request");
    expect(pool.memory.takenOnGpu("new", false)).toBe(40 * MB);
  });

  it("is freed by evicting the least recently used idle model on the GPU", async () => {
    const { pool, clock } = makePool();
    for (const [alias, gpuBytes] of [
      ["elsewhere", 0],
      ["old", 40 * MB],
      ["young", 40 * MB],
    ] as const) {
      await leaseAndReturn(pool, alias, { gpuBytes });
      await clock.advance(10);
    }
    await leaseAndReturn(pool, "new", { gpuBytes: 40 * MB });
    expect(pool.models().map(({ alias }) => alias)).toEqual(["elsewhere", "young", "new"]);
  });

  it("is not reserved by two loads that were planned at the same time", async () => {
    const { pool, engines } = makePool();
    const fewer = { ...ON_CPU, gpuLayers: 2 };
    const needs = { bytes: 30 * MB, gpuBytes: 40 * MB };
    const second = plan({
      gpuBytes: 60 * MB,
      needsOf: () => needs,
      replan: async () => plan({ spec: fewer, ...needs }),
    });
    await Promise.all([pool.load("a", plan({ gpuBytes: 60 * MB })), pool.load("b", second)]);
    expect(engines.starts.map(({ spec }) => spec.gpuLayers)).toEqual([0, 2]);
    expect(pool.memory.takenOnGpu("c", false)).toBe(100 * MB);
    await expect(pool.load("c", plan({ bytes: 70 * MB, mayEvict: false }))).rejects.toMatchObject({
      message: expect.stringMatching(/60 MiB of 100 MiB/),
    });
  });
});
