import { describe, expect, it } from "vitest";
import { ServiceError } from "../../../../src/errors/service-error.ts";
import { settle } from "../../../support/fake-clock.ts";
import { loadPlan as plan } from "./load-plans.ts";
import { release, leaseAndReturn, makePool, NEVER } from "./make-pool.ts";

describe("a crashed engine", () => {
  it("unloads the model and is reported, and the next request restarts it with the same settings", async () => {
    const { pool, engines, events } = makePool();
    await pool.load("a", plan({ contextSize: 777 }));
    const lease = pool.tryLease("a");

    await engines.last.crash();

    expect(pool.model("a")).toBeUndefined();
    expect(pool.tryLease("a")).toBeUndefined();
    release(lease!);
    expect(pool.hasCrashed("a")).toBe(true);

    release(await pool.lease("a", async () => plan(), NEVER));

    expect(engines.last.spec.contextSize).toBe(777);
    expect(events).toEqual([
      { type: "model-loaded", model: "a" },
      {
        type: "model-failed",
        model: "a",
        code: "engine_crashed",
        message: 'The engine of "a" ended: killed by SIGKILL.',
      },
      { type: "engine-restarted", model: "a", reason: "killed by SIGKILL" },
      { type: "model-loaded", model: "a" },
    ]);
    expect(pool.hasCrashed("a")).toBe(false);
  });

  it("is reported in words that an operator understands", async () => {
    const { pool, engines, events } = makePool();
    await pool.load("a", plan());
    await engines.last.crash("aborted: /source/llama.cpp/ggml/src/ggml.c:1234: GGML_ASSERT(x) failed");
    release(await pool.lease("a", async () => plan(), NEVER));
    expect(JSON.stringify(events)).toContain("engine-restarted");
    expect(JSON.stringify(events)).not.toContain("GGML_ASSERT");
  });

  it("that has not ended yet is waited for", async () => {
    const { pool, engines } = makePool();
    await pool.load("a", plan());
    const dying = engines.last;
    dying.alive = false;
    expect(pool.tryLease("a")).toBeUndefined();

    const lending = pool.lease("a", async () => plan(), NEVER);
    await settle();
    expect(engines.starts).toHaveLength(1);
    await dying.crash();

    expect((await lending).engine).not.toBe(dying);
    expect(engines.starts).toHaveLength(2);
  });

  it("that crashes repeatedly is restarted with growing back-offs, up to a minute", async () => {
    const { pool, engines, clock } = makePool();
    const pauses: number[] = [];
    const codes = new Set<string>();
    await pool.lease("a", async () => plan(), NEVER);
    await engines.last.crash();
    for (let count = 0; count < 9; count++) {
      const refusal = await pool.lease("a", async () => plan(), NEVER).catch((error: ServiceError) => error);
      if (refusal instanceof ServiceError) {
        codes.add(refusal.code);
        pauses.push(refusal.retryAfterSecs ?? 0);
        await clock.advance((refusal.retryAfterSecs ?? 0) * 1000);
        await pool.lease("a", async () => plan(), NEVER);
      }
      await engines.last.crash();
    }
    expect([...codes]).toEqual(["engine_crashed"]);
    expect(pauses).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
  });

  it("has its failures cleared after a successful request", async () => {
    const { pool, engines } = makePool();
    await pool.lease("a", async () => plan(), NEVER);
    await engines.last.crash();
    await leaseAndReturn(pool, "a");
    await engines.last.crash();

    await leaseAndReturn(pool, "a");

    expect(pool.model("a")?.state).toBe("loaded");
  });

  it("does not delay an explicit load", async () => {
    const { pool, engines } = makePool();
    await pool.load("a", plan());
    await engines.last.crash();
    await pool.load("a", plan());
    await engines.last.crash();

    await pool.load("a", plan());

    expect(pool.model("a")?.state).toBe("loaded");
  });

  it("is not restarted after its model was unloaded", async () => {
    const { pool, engines } = makePool();
    await pool.load("a", plan());
    await engines.last.crash();
    await expect(pool.unload("a", "request")).rejects.toMatchObject({ code: "model_already_unloaded" });
    expect(pool.hasCrashed("a")).toBe(false);
  });
});
