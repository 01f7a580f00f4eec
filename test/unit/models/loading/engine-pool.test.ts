import { describe, expect, it } from "vitest";
import { ServiceError } from "../../../../src/errors/service-error.ts";
import type { ServiceEvent } from "../../../../src/events/service-events.ts";
import { EnginePool, type EngineLoan } from "../../../../src/models/loading/engine-pool.ts";
import type { LoadRequest } from "../../../../src/models/loading/load-request.ts";
import { FakeClock, FakeEngines, settle } from "./fake-engines.ts";
import { loadRequest as request } from "./load-requests.ts";

const MB = 1024 * 1024;
const BUDGET = 100 * MB;
const NEVER = new AbortController().signal;

function makePool(onEvent: () => void = () => {}): {
  pool: EnginePool;
  engines: FakeEngines;
  clock: FakeClock;
  events: ServiceEvent[];
} {
  const engines = new FakeEngines();
  const clock = new FakeClock();
  const events: ServiceEvent[] = [];
  const pool = new EnginePool({
    startEngine: engines.start,
    clock,
    memoryBudget: BUDGET,
    events: {
      emit: (event) => {
        events.push(event);
        onEvent();
      },
    },
  });
  return { pool, engines, clock, events };
}

async function lendAndReturn(pool: EnginePool, alias: string, options?: Partial<LoadRequest>): Promise<void> {
  (await pool.lend(alias, request(options), NEVER))[Symbol.dispose]();
}

const giveBack = (loan: EngineLoan): void => loan[Symbol.dispose]();

describe("loading", () => {
  it("goes from nothing over loading to loaded, and reports it", async () => {
    const { pool, engines, events } = makePool();
    engines.manual = true;
    const loading = pool.load("a", request());
    await settle();
    expect(pool.slot("a")?.state).toBe("loading");

    engines.starts[0]?.succeed();
    await loading;

    expect(pool.slot("a")?.state).toBe("loaded");
    expect(events).toEqual([{ type: "model-loaded", model: "a" }]);
  });

  it("happens once for two who ask for the same", async () => {
    const { pool, engines } = makePool();
    engines.manual = true;
    const both = Promise.all([pool.load("a", request()), pool.load("a", request())]);
    await settle();
    expect(engines.starts).toHaveLength(1);

    engines.starts[0]?.succeed();
    await both;
  });

  it("is refused while the same alias is being loaded differently", async () => {
    const { pool, engines } = makePool();
    engines.manual = true;
    const first = pool.load("a", request());

    await expect(pool.load("a", request({ contextSize: 1024 }))).rejects.toMatchObject({
      code: "model_busy",
    });

    await settle();
    engines.starts[0]?.succeed();
    await first;
  });

  it("is refused when it is loaded already", async () => {
    const { pool } = makePool();
    await pool.load("a", request());
    await expect(pool.load("a", request())).rejects.toMatchObject({ code: "model_already_loaded" });
  });

  it("waits for an unload under way", async () => {
    const { pool, engines } = makePool();
    await pool.load("a", request());
    const unloading = pool.unload("a", "request");
    expect(pool.slot("a")?.state).toBe("unloading");

    await pool.load("a", request());

    await unloading;
    expect(engines.starts).toHaveLength(2);
    expect(pool.slot("a")?.state).toBe("loaded");
  });

  it("that fails leaves nothing behind, and says why to everyone", async () => {
    const { pool, engines, events } = makePool();
    engines.error = new ServiceError("invalid_model_file", "It is damaged.");

    const outcomes = await Promise.allSettled([pool.load("a", request()), pool.load("a", request())]);

    for (const outcome of outcomes) expect(outcome).toMatchObject({ reason: { code: "invalid_model_file" } });
    expect(pool.slot("a")).toBeUndefined();
    expect(events).toEqual([
      { type: "model-failed", model: "a", code: "invalid_model_file", message: "It is damaged." },
    ]);
  });

  it("goes on while one of two callers waits, and ends when both have gone", async () => {
    const { pool, engines, events } = makePool();
    engines.manual = true;
    const [one, other] = [new AbortController(), new AbortController()];
    const loads = Promise.allSettled([
      pool.load("a", request(), one.signal),
      pool.load("a", request(), other.signal),
    ]);
    await settle();

    one.abort(new Error("gone"));
    await settle();
    expect(engines.starts[0]?.signal?.aborted).toBe(false);
    other.abort(new Error("gone too"));

    expect((await loads).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(engines.starts[0]?.signal?.aborted).toBe(true);
    await settle();
    expect(pool.slot("a")).toBeUndefined();
    expect(events).toEqual([]);
  });

  it("begins anew for who comes when all others have just gone", async () => {
    const { pool, engines } = makePool();
    engines.manual = true;
    const gone = new AbortController();
    const first = pool.load("a", request(), gone.signal);
    await settle();
    gone.abort(new Error("gone"));
    const second = pool.load("a", request());
    await expect(first).rejects.toThrow("gone");
    await settle();

    engines.starts[1]?.succeed();

    await second;
    expect(pool.slot("a")?.state).toBe("loaded");
  });
});

describe("unloading", () => {
  it.each(["request", "idle", "memory", "shutdown"] as const)("reports its reason: %s", async (reason) => {
    const { pool, engines, events } = makePool();
    await pool.load("a", request());
    await pool.unload("a", reason);

    expect(engines.last.alive).toBe(false);
    expect(pool.slot("a")).toBeUndefined();
    expect(events.at(-1)).toEqual({ type: "model-unloaded", model: "a", reason });
  });

  it("is refused when nothing is loaded, or while it is loading or unloading", async () => {
    const { pool, engines } = makePool();
    await expect(pool.unload("a", "request")).rejects.toMatchObject({ code: "model_already_unloaded" });
    engines.manual = true;
    const loading = pool.load("a", request());
    await settle();
    await expect(pool.unload("a", "request")).rejects.toMatchObject({ code: "model_busy" });
    engines.starts[0]?.succeed();
    await loading;
    const unloading = pool.unload("a", "request");
    await expect(pool.unload("a", "request")).rejects.toMatchObject({ code: "model_busy" });
    await unloading;
  });

  it("happens at once although requests run; their leases end without harm", async () => {
    const { pool, engines } = makePool();
    await pool.load("a", request());
    const loan = pool.tryLend("a");
    await pool.unload("a", "request");
    await pool.load("a", request());

    giveBack(loan!);

    expect(pool.slot("a")?.leases).toBe(0);
    expect(engines.engines.map(({ alive }) => alive)).toEqual([false, true]);
  });

  it("clears a load under way, whose callers are told why", async () => {
    const { pool, engines } = makePool();
    engines.manual = true;
    const loading = pool.load("a", request());
    await settle();

    const clearing = pool.clear("a", new ServiceError("model_not_found", "It has been deleted."), "request");

    await expect(loading).rejects.toMatchObject({ code: "model_not_found" });
    await clearing;
    expect(pool.slot("a")).toBeUndefined();
  });
});

describe("keep-alive", () => {
  it("unloads an engine that was idle for so long", async () => {
    const { pool, clock, events } = makePool();
    await lendAndReturn(pool, "a", { keepAliveMs: 1000 });
    expect(pool.slot("a")?.expiresAt).toBe(clock.now() + 1000);

    await clock.advance(999);
    expect(pool.slot("a")?.state).toBe("loaded");
    await clock.advance(1);

    expect(pool.slot("a")).toBeUndefined();
    expect(events.at(-1)).toEqual({ type: "model-unloaded", model: "a", reason: "idle" });
  });

  it("does not count while a request runs, and counts anew after it", async () => {
    const { pool, clock } = makePool();
    const loan = await pool.lend("a", request({ keepAliveMs: 1000 }), NEVER);
    expect(pool.slot("a")?.expiresAt).toBeUndefined();
    await clock.advance(5000);
    expect(pool.slot("a")?.state).toBe("loaded");

    giveBack(loan);
    await clock.advance(999);
    giveBack(pool.tryLend("a")!);
    await clock.advance(999);

    expect(pool.slot("a")?.state).toBe("loaded");
  });

  it("never unloads what was loaded by hand", async () => {
    const { pool, clock } = makePool();
    await pool.load("a", request());
    await clock.advance(1e12);
    expect(pool.slot("a")).toMatchObject({ state: "loaded", expiresAt: undefined });
  });
});

describe("memory", () => {
  it("is made by unloading the model that was idle longest", async () => {
    const { pool, clock, events } = makePool();
    for (const alias of ["a", "b", "c"]) {
      await lendAndReturn(pool, alias, { bytes: 30 * MB });
      await clock.advance(10);
    }
    giveBack(pool.tryLend("a")!);

    await lendAndReturn(pool, "d", { bytes: 30 * MB });

    expect(pool.slots().map(({ alias }) => alias)).toEqual(["a", "c", "d"]);
    expect(events).toContainEqual({ type: "model-unloaded", model: "b", reason: "memory" });
  });

  it("is never taken from a model in use", async () => {
    const { pool } = makePool();
    const busy = await pool.lend("a", request({ bytes: 60 * MB }), NEVER);

    await expect(pool.lend("b", request({ bytes: 60 * MB }), NEVER)).rejects.toMatchObject({
      code: "overloaded",
      retryAfterSecs: 5,
    });

    expect(busy.engine.alive).toBe(true);
  });

  it("is not taken from others when the load must not", async () => {
    const { pool } = makePool();
    await pool.load("a", request({ bytes: 60 * MB }));
    await expect(pool.load("b", request({ bytes: 60 * MB, mayEvict: false }))).rejects.toMatchObject({
      code: "insufficient_memory",
      message: expect.stringMatching(/60 MiB.*40 MiB of 100 MiB/),
    });
  });

  it("that is not there at all is refused with both numbers", async () => {
    const { pool, engines } = makePool();
    await expect(pool.load("a", request({ bytes: 200 * MB }))).rejects.toMatchObject({
      code: "insufficient_memory",
      message: expect.stringMatching(/200 MiB.*100 MiB/),
    });
    expect(engines.starts).toHaveLength(0);
  });

  it("is reserved by loads under way", async () => {
    const { pool, engines } = makePool();
    engines.manual = true;
    const first = pool.load("a", request({ bytes: 60 * MB }));
    await settle();
    await expect(pool.load("b", request({ bytes: 60 * MB }))).rejects.toMatchObject({ code: "overloaded" });
    engines.starts[0]?.succeed();
    await first;
  });

  it("is free before the newcomer starts", async () => {
    const { pool, engines } = makePool();
    await lendAndReturn(pool, "a", { bytes: 60 * MB });
    const { promise, resolve } = Promise.withResolvers<void>();
    engines.last.untilEnded = promise;
    engines.manual = true;
    const loading = pool.load("b", request({ bytes: 60 * MB }));
    await settle();
    expect(pool.slot("a")?.state).toBe("unloading");
    expect(engines.starts).toHaveLength(1);

    resolve();
    await settle();

    engines.starts[1]?.succeed();
    await loading;
  });

  it("is not taken from a model that was loaded for a request which has not got it yet", async () => {
    let second: Promise<EngineLoan> | undefined;
    // Somebody else comes at the very moment when the model is loaded.
    const { pool } = makePool(() => {
      second ??= pool.lend("b", request({ bytes: 60 * MB }), NEVER);
    });

    const first = pool.lend("a", request({ bytes: 60 * MB }), NEVER);

    await expect(first.then(async () => await second)).rejects.toMatchObject({ code: "overloaded" });
    expect((await first).engine.alive).toBe(true);
  });
});

describe("a crash", () => {
  it("ends the engine's slot and is reported, and the next request restarts it as it was", async () => {
    const { pool, engines, events } = makePool();
    await pool.load("a", request({ contextSize: 777 }));
    const loan = pool.tryLend("a");

    await engines.last.crash();

    expect(pool.slot("a")).toBeUndefined();
    expect(pool.tryLend("a")).toBeUndefined();
    giveBack(loan!);
    const crashed = pool.crashedRequest("a");
    expect(crashed?.spec.contextSize).toBe(777);

    giveBack(await pool.lend("a", crashed!, NEVER));

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
    expect(pool.crashedRequest("a")).toBeUndefined();
  });

  it("that has begun but is not over yet is waited for", async () => {
    const { pool, engines } = makePool();
    await pool.load("a", request());
    const dying = engines.last;
    dying.alive = false;
    expect(pool.tryLend("a")).toBeUndefined();

    const lending = pool.lend("a", request(), NEVER);
    await settle();
    expect(engines.starts).toHaveLength(1);
    await dying.crash();

    expect((await lending).engine).not.toBe(dying);
    expect(engines.starts).toHaveLength(2);
  });

  it("that repeats is answered by growing pauses, up to a minute", async () => {
    const { pool, engines, clock } = makePool();
    const pauses: number[] = [];
    const codes = new Set<string>();
    await pool.lend("a", request(), NEVER);
    await engines.last.crash();
    for (let count = 0; count < 9; count++) {
      const refusal = await pool.lend("a", request(), NEVER).catch((error: ServiceError) => error);
      if (refusal instanceof ServiceError) {
        codes.add(refusal.code);
        pauses.push(refusal.retryAfterSecs ?? 0);
        await clock.advance((refusal.retryAfterSecs ?? 0) * 1000);
        await pool.lend("a", request(), NEVER);
      }
      await engines.last.crash();
    }
    expect([...codes]).toEqual(["engine_crashed"]);
    expect(pauses).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
  });

  it("is forgiven once a request has been served", async () => {
    const { pool, engines } = makePool();
    await pool.lend("a", request(), NEVER);
    await engines.last.crash();
    await lendAndReturn(pool, "a");
    await engines.last.crash();

    await lendAndReturn(pool, "a");

    expect(pool.slot("a")?.state).toBe("loaded");
  });

  it("does not hold back a load by hand", async () => {
    const { pool, engines } = makePool();
    await pool.load("a", request());
    await engines.last.crash();
    await pool.load("a", request());
    await engines.last.crash();

    await pool.load("a", request());

    expect(pool.slot("a")?.state).toBe("loaded");
  });

  it("while nobody waits is no reason to load again after an unload", async () => {
    const { pool, engines } = makePool();
    await pool.load("a", request());
    await engines.last.crash();
    await expect(pool.unload("a", "request")).rejects.toMatchObject({ code: "model_already_unloaded" });
    expect(pool.crashedRequest("a")).toBeUndefined();
  });
});

describe("closing", () => {
  it("ends every engine and load, and lets nothing start", async () => {
    const { pool, engines, events } = makePool();
    await pool.load("a", request());
    engines.manual = true;
    const loading = pool.load("b", request());
    const outcome = Promise.allSettled([loading]);
    await settle();

    await pool.close();

    expect(await outcome).toMatchObject([{ reason: { code: "shutting_down" } }]);
    expect(engines.engines.some(({ alive }) => alive)).toBe(false);
    expect(events.at(-1)).toEqual({ type: "model-unloaded", model: "a", reason: "shutdown" });
    await expect(pool.load("c", request())).rejects.toMatchObject({ code: "shutting_down" });
  });
});
