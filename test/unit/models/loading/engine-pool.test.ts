import { describe, expect, it } from "vitest";
import { ServiceError } from "../../../../src/errors/service-error.ts";
import { settle } from "../../../support/fake-clock.ts";
import { loadPlan as plan } from "./load-plans.ts";
import { release, makePool } from "./make-pool.ts";

describe("EnginePool.load()", () => {
  it("reports the states from loading to loaded", async () => {
    const { pool, engines, events } = makePool();
    engines.manual = true;
    const loading = pool.load("a", plan());
    await settle();
    expect(pool.model("a")?.state).toBe("loading");

    engines.starts[0]?.succeed();
    await loading;

    expect(pool.model("a")?.state).toBe("loaded");
    expect(events).toEqual([{ type: "model-loaded", model: "a" }]);
  });

  it("starts one engine for two callers with the same settings", async () => {
    const { pool, engines } = makePool();
    engines.manual = true;
    const both = Promise.all([pool.load("a", plan()), pool.load("a", plan())]);
    await settle();
    expect(engines.starts).toHaveLength(1);

    engines.starts[0]?.succeed();
    await both;
  });

  it("rejects other settings while the same alias is being loaded", async () => {
    const { pool, engines } = makePool();
    engines.manual = true;
    const first = pool.load("a", plan());

    await expect(pool.load("a", plan({ contextSize: 1024 }))).rejects.toMatchObject({
      code: "model_busy",
    });

    await settle();
    engines.starts[0]?.succeed();
    await first;
  });

  it("rejects a model that is already loaded", async () => {
    const { pool } = makePool();
    await pool.load("a", plan());
    await expect(pool.load("a", plan())).rejects.toMatchObject({
      code: "model_already_loaded",
      message: expect.stringContaining("unload it first"),
    });
  });

  it("waits for an unload in progress", async () => {
    const { pool, engines } = makePool();
    await pool.load("a", plan());
    const unloading = pool.unload("a", "request");
    expect(pool.model("a")?.state).toBe("unloading");

    await pool.load("a", plan());

    await unloading;
    expect(engines.starts).toHaveLength(2);
    expect(pool.model("a")?.state).toBe("loaded");
  });

  it("removes a failed model, and reports the error to every caller", async () => {
    const { pool, engines, events } = makePool();
    engines.error = new ServiceError("invalid_model_file", "It is damaged.");

    const outcomes = await Promise.allSettled([pool.load("a", plan()), pool.load("a", plan())]);

    for (const outcome of outcomes) expect(outcome).toMatchObject({ reason: { code: "invalid_model_file" } });
    expect(pool.model("a")).toBeUndefined();
    expect(events).toEqual([
      { type: "model-failed", model: "a", code: "invalid_model_file", message: "It is damaged." },
    ]);
  });

  it("continues while one of two callers waits, and is aborted when both have left", async () => {
    const { pool, engines, events } = makePool();
    engines.manual = true;
    const [one, other] = [new AbortController(), new AbortController()];
    const loads = Promise.allSettled([
      pool.load("a", plan(), one.signal),
      pool.load("a", plan(), other.signal),
    ]);
    await settle();

    one.abort(new Error("gone"));
    await settle();
    expect(engines.starts[0]?.signal?.aborted).toBe(false);
    other.abort(new Error("gone too"));

    expect((await loads).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(engines.starts[0]?.signal?.aborted).toBe(true);
    await settle();
    expect(pool.model("a")).toBeUndefined();
    expect(events).toEqual([]);
  });

  it("starts again for a caller that comes after all others have left", async () => {
    const { pool, engines } = makePool();
    engines.manual = true;
    const leaving = new AbortController();
    const first = pool.load("a", plan(), leaving.signal);
    await settle();
    leaving.abort(new Error("gone"));
    const second = pool.load("a", plan());
    await expect(first).rejects.toThrow("gone");
    await settle();

    engines.starts[1]?.succeed();

    await second;
    expect(pool.model("a")?.state).toBe("loaded");
  });
});

describe("EnginePool.unload()", () => {
  it.each(["request", "idle", "memory", "shutdown"] as const)("reports its reason: %s", async (reason) => {
    const { pool, engines, events } = makePool();
    await pool.load("a", plan());
    await pool.unload("a", reason);

    expect(engines.last.alive).toBe(false);
    expect(pool.model("a")).toBeUndefined();
    expect(events.at(-1)).toEqual({ type: "model-unloaded", model: "a", reason });
  });

  it("is rejected if the model is not loaded, loading or unloading", async () => {
    const { pool, engines } = makePool();
    await expect(pool.unload("a", "request")).rejects.toMatchObject({ code: "model_already_unloaded" });
    engines.manual = true;
    const loading = pool.load("a", plan());
    await settle();
    await expect(pool.unload("a", "request")).rejects.toMatchObject({ code: "model_busy" });
    engines.starts[0]?.succeed();
    await loading;
    const unloading = pool.unload("a", "request");
    await expect(pool.unload("a", "request")).rejects.toMatchObject({ code: "model_busy" });
    await unloading;
  });

  it("ends the engine despite running requests, whose leases can still be disposed", async () => {
    const { pool, engines } = makePool();
    await pool.load("a", plan());
    const lease = pool.tryLease("a");
    await pool.unload("a", "request");
    await pool.load("a", plan());

    release(lease!);

    expect(pool.model("a")?.users).toBe(0);
    expect(engines.engines.map(({ alive }) => alive)).toEqual([false, true]);
  });

  it("aborts a load in progress, whose callers get the reason", async () => {
    const { pool, engines } = makePool();
    engines.manual = true;
    const loading = pool.load("a", plan());
    await settle();

    const clearing = pool.terminate(
      "a",
      new ServiceError("model_not_found", "It has been deleted."),
      "request",
    );

    await expect(loading).rejects.toMatchObject({ code: "model_not_found" });
    await clearing;
    expect(pool.model("a")).toBeUndefined();
  });
});

describe("EnginePool.close()", () => {
  it("ends every engine and load, and rejects new ones", async () => {
    const { pool, engines, events } = makePool();
    await pool.load("a", plan());
    engines.manual = true;
    const loading = pool.load("b", plan());
    const outcome = Promise.allSettled([loading]);
    await settle();

    await pool.close();

    expect(await outcome).toMatchObject([{ reason: { code: "shutting_down" } }]);
    expect(engines.engines.some(({ alive }) => alive)).toBe(false);
    expect(events.at(-1)).toEqual({ type: "model-unloaded", model: "a", reason: "shutdown" });
    await expect(pool.load("c", plan())).rejects.toMatchObject({ code: "shutting_down" });
  });
});
