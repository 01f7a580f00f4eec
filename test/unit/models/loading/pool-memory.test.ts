import { describe, expect, it } from "vitest";
import type { Lease } from "../../../../src/models/loading/loaded-model.ts";
import { settle } from "../../../support/fake-clock.ts";
import { loadPlan as plan } from "./load-plans.ts";
import { release, leaseAndReturn, makePool, MB, NEVER } from "./make-pool.ts";

describe("keep-alive", () => {
  it("unloads an engine after its idle time", async () => {
    const { pool, clock, events } = makePool();
    await leaseAndReturn(pool, "a", { keepAliveMs: 1000 });
    expect(pool.model("a")?.expiresAt).toBe(clock.now() + 1000);

    await clock.advance(999);
    expect(pool.model("a")?.state).toBe("loaded");
    await clock.advance(1);

    expect(pool.model("a")).toBeUndefined();
    expect(events.at(-1)).toEqual({ type: "model-unloaded", model: "a", reason: "idle" });
  });

  it("does not count while a request runs, and restarts after it", async () => {
    const { pool, clock } = makePool();
    const lease = await pool.lease("a", async () => plan({ keepAliveMs: 1000 }), NEVER);
    expect(pool.model("a")?.expiresAt).toBeUndefined();
    await clock.advance(5000);
    expect(pool.model("a")?.state).toBe("loaded");

    release(lease);
    await clock.advance(999);
    release(pool.tryLease("a")!);
    await clock.advance(999);

    expect(pool.model("a")?.state).toBe("loaded");
  });

  it("never unloads an explicitly loaded model", async () => {
    const { pool, clock } = makePool();
    await pool.load("a", plan());
    await clock.advance(1e12);
    expect(pool.model("a")).toMatchObject({ state: "loaded", expiresAt: undefined });
  });
});

describe("memory for a load", () => {
  it("is freed by evicting the least recently used model", async () => {
    const { pool, clock, events } = makePool();
    for (const alias of ["a", "b", "c"]) {
      await leaseAndReturn(pool, alias, { bytes: 30 * MB });
      await clock.advance(10);
    }
    release(pool.tryLease("a")!);

    await leaseAndReturn(pool, "d", { bytes: 30 * MB });

    expect(pool.models().map(({ alias }) => alias)).toEqual(["a", "c", "d"]);
    expect(events).toContainEqual({ type: "model-unloaded", model: "b", reason: "memory" });
  });

  it("of low priority is only freed from models that have been idle for a minute", async () => {
    const { pool, clock } = makePool();
    await leaseAndReturn(pool, "a", { bytes: 80 * MB });
    await clock.advance(59_000);
    const load = async (): Promise<void> =>
      await leaseAndReturn(pool, "b", { bytes: 80 * MB, mayEvict: "unused" });
    await expect(load()).rejects.toMatchObject({ code: "overloaded" });
    expect(pool.model("a")?.state).toBe("loaded");
    await clock.advance(1000);
    await load();
    expect(pool.models().map(({ alias }) => alias)).toEqual(["b"]);
  });

  it("is never freed from a model in use", async () => {
    const { pool } = makePool();
    const busy = await pool.lease("a", async () => plan({ bytes: 60 * MB }), NEVER);

    await expect(pool.lease("b", async () => plan({ bytes: 60 * MB }), NEVER)).rejects.toMatchObject({
      code: "overloaded",
      retryAfterSecs: 5,
    });

    expect(busy.engine.alive).toBe(true);
  });

  it("is not freed from other models if the load may not evict them", async () => {
    const { pool } = makePool();
    await pool.load("a", plan({ bytes: 60 * MB }));
    await expect(pool.load("b", plan({ bytes: 60 * MB, mayEvict: false }))).rejects.toMatchObject({
      code: "insufficient_memory",
      message: expect.stringMatching(/60 MiB.*40 MiB of 100 MiB/),
    });
  });

  it("beyond the budget is rejected with both figures", async () => {
    const { pool, engines } = makePool();
    await expect(pool.load("a", plan({ bytes: 200 * MB }))).rejects.toMatchObject({
      code: "insufficient_memory",
      message: expect.stringMatching(/200 MiB.*100 MiB/),
    });
    expect(engines.starts).toHaveLength(0);
  });

  it("is reserved by loads in progress", async () => {
    const { pool, engines } = makePool();
    engines.manual = true;
    const first = pool.load("a", plan({ bytes: 60 * MB }));
    await settle();
    await expect(pool.load("b", plan({ bytes: 60 * MB }))).rejects.toMatchObject({ code: "overloaded" });
    engines.starts[0]?.succeed();
    await first;
  });

  it("is free before the new engine starts", async () => {
    const { pool, engines } = makePool();
    await leaseAndReturn(pool, "a", { bytes: 60 * MB });
    const { promise, resolve } = Promise.withResolvers<void>();
    engines.last.untilEnded = promise;
    engines.manual = true;
    const loading = pool.load("b", plan({ bytes: 60 * MB }));
    await settle();
    expect(pool.model("a")?.state).toBe("unloading");
    expect(engines.starts).toHaveLength(1);

    resolve();
    await settle();

    engines.starts[1]?.succeed();
    await loading;
  });

  it("that cannot be freed fails the load, and leaves nothing behind", async () => {
    const { pool, engines } = makePool();
    await leaseAndReturn(pool, "a", { bytes: 60 * MB });
    engines.last.untilEnded = Promise.reject(new Error("it does not end"));
    await expect(pool.load("b", plan({ bytes: 60 * MB }))).rejects.toMatchObject({ code: "internal_error" });
    expect(pool.models()).toEqual([]);
    await pool.load("b", plan({ bytes: 60 * MB }));
  });

  it("is not freed from a model whose waiting request has not leased it yet", async () => {
    let second: Promise<Lease> | undefined;
    // Another request comes at the moment at which the model is loaded.
    const { pool } = makePool(() => {
      second ??= pool.lease("b", async () => plan({ bytes: 60 * MB }), NEVER);
    });

    const first = pool.lease("a", async () => plan({ bytes: 60 * MB }), NEVER);

    await expect(first.then(async () => await second)).rejects.toMatchObject({ code: "overloaded" });
    expect((await first).engine.alive).toBe(true);
  });
});
