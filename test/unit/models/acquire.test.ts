import { describe, expect, it } from "vitest";
import { settle } from "../../support/fake-clock.ts";
import { startModels } from "./service-fixture.ts";

const MINI = "daybreak-mini";
const NEVER = new AbortController().signal;

describe("acquire()", () => {
  it("leases the loaded engine and counts the active request", async () => {
    const { models, engines } = await startModels();
    await models.load({ alias: MINI });
    const lease = await models.acquire(MINI, NEVER);

    expect(lease.engine).toBe(engines.last);
    expect(lease.model).toMatchObject({ alias: MINI, state: "loaded", isDefault: true });
    expect((await models.get(MINI)).activeRequests).toBe(1);

    lease[Symbol.dispose]();
    lease[Symbol.dispose]();
    expect((await models.get(MINI)).activeRequests).toBe(0);
  });

  it("leases the default model if no name is given", async () => {
    const { models } = await startModels();
    await models.load({ alias: MINI });
    using lease = await models.acquire(undefined, NEVER);
    expect(lease.model.alias).toBe(MINI);
  });

  it.each([
    ["nobody", "model_not_found", /No model "nobody" is known; .*"daybreak list"/],
    [MINI, "model_not_loaded", /POST \/api\/models\/load .*--no-auto-load/],
  ])("without auto-load reports the reason for %s", async (name, code, message) => {
    const { models } = await startModels({ config: { auto_load: false } });
    await expect(models.acquire(name, NEVER)).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    });
  });

  it("finds a loaded model by its file, and asks to load other files first", async () => {
    const { models, userFile } = await startModels();
    const [file, other] = [userFile("mine.gguf"), userFile("other.gguf")];
    await models.load({ alias: file });
    using lease = await models.acquire(file, NEVER);
    expect(lease.model.alias).toBe("mine");
    await expect(models.acquire(other, NEVER)).rejects.toMatchObject({
      code: "model_not_found",
      message: expect.stringContaining(`"daybreak load ${other}"`),
    });
  });

  it("without auto-load does not wait for a load in progress", async () => {
    const { models, engines } = await startModels({ config: { auto_load: false } });
    engines.manual = true;
    const loading = models.load({ alias: MINI });
    while (engines.starts.length === 0) await settle();
    await expect(models.acquire(MINI, NEVER)).rejects.toMatchObject({ code: "model_loading", status: 503 });
    engines.starts[0]?.succeed();
    await loading;
  });

  it("restarts a crashed engine even without auto-load, with its previous settings", async () => {
    const { models, engines } = await startModels({ config: { auto_load: false } });
    await models.load({ alias: MINI, contextSize: 99 });
    const before = await models.acquire(MINI, NEVER);
    await engines.last.crash();
    before[Symbol.dispose]();
    expect((await models.get(MINI)).state).toBe("available");

    using lease = await models.acquire(MINI, NEVER);

    expect(lease.engine.spec.contextSize).toBe(99);
    expect(engines.starts).toHaveLength(2);
  });

  it("reports model_loading while the model is being downloaded", async () => {
    const { models, hub } = await startModels();
    const { promise, resolve } = Promise.withResolvers<void>();
    hub.untilPulled = promise;
    const pulling = models.pull("tiny:1b", () => {}, NEVER);
    await expect(models.acquire("tiny:1b", NEVER)).rejects.toMatchObject({ code: "model_loading" });
    resolve();
    await pulling;
  });
});

describe("acquire() with auto-load", () => {
  it("loads a model on disk once for concurrent requests, and unloads it after its idle time", async () => {
    const { models, engines, clock } = await startModels({ config: { auto_load: true, keep_alive: "60s" } });
    const leases = await Promise.all([models.acquire(MINI, NEVER), models.acquire(undefined, NEVER)]);
    expect(engines.starts).toHaveLength(1);

    await clock.advance(61_000);
    expect((await models.get(MINI)).state).toBe("loaded");
    for (const lease of leases) lease[Symbol.dispose]();
    expect((await models.get(MINI)).expiresAt).toBe(clock.now() + 60_000);
    await clock.advance(60_000);

    expect((await models.get(MINI)).state).toBe("available");
  });

  it("unloads the least recently used model to free memory for another", async () => {
    const { models, clock, userFile } = await startModels({
      config: { auto_load: true },
      estimateMemory: () => 40 * 1024 * 1024,
    });
    await models.load({ alias: "a", path: userFile("a.gguf") });
    await clock.advance(1000);
    await models.load({ alias: "b", path: userFile("b.gguf") });
    await clock.advance(1000);

    (await models.acquire(MINI, NEVER))[Symbol.dispose]();

    const states = (await models.list()).map(({ alias, state }) => [alias, state]);
    expect(states).toEqual([
      ["a", "available"],
      ["b", "loaded"],
      [MINI, "loaded"],
    ]);
  });

  it("never unloads an explicitly loaded model because of idleness", async () => {
    const { models, clock } = await startModels({ config: { auto_load: true, keep_alive: "60s" } });
    await models.load({ alias: MINI });
    (await models.acquire(MINI, NEVER))[Symbol.dispose]();
    await clock.advance(1e9);
    expect((await models.get(MINI)).state).toBe("loaded");
  });

  it("rejects when the client has left", async () => {
    const { models, engines } = await startModels({ config: { auto_load: true } });
    engines.manual = true;
    const client = new AbortController();
    const acquiring = models.acquire(MINI, client.signal);
    while (engines.starts.length === 0) await settle();
    client.abort(new Error("gone"));
    await expect(acquiring).rejects.toThrow("gone");
    await settle();
    expect((await models.get(MINI)).state).toBe("available");
  });
});

describe("acquire() with a residency", () => {
  it("loads a model without auto-load, with the settings of the residency", async () => {
    const { models, clock } = await startModels({ config: { keep_alive: "60s" } });
    const lease = await models.acquire(MINI, NEVER, { contextSize: 77, gpuLayers: 3 });
    expect(lease.engine.spec).toMatchObject({ contextSize: 77, gpuLayers: 3 });
    lease[Symbol.dispose]();
    expect((await models.get(MINI)).expiresAt).toBe(clock.now() + 60_000);
  });

  it("changes the idle time of a loaded model", async () => {
    const { models, clock } = await startModels();
    await models.load({ alias: MINI });
    (await models.acquire(MINI, NEVER, { keepAliveMs: 5000 }))[Symbol.dispose]();
    expect((await models.get(MINI)).expiresAt).toBe(clock.now() + 5000);
    (await models.acquire(MINI, NEVER, { keepAliveMs: Number.POSITIVE_INFINITY }))[Symbol.dispose]();
    await clock.advance(1e9);
    expect((await models.get(MINI)).state).toBe("loaded");
  });

  it("with a keep-alive of 0 unloads the model after its last request, not before", async () => {
    const { models, clock } = await startModels();
    const first = await models.acquire(MINI, NEVER, { keepAliveMs: 0 });
    const second = await models.acquire(MINI, NEVER);
    first[Symbol.dispose]();
    await clock.advance(1000);
    expect((await models.get(MINI)).state).toBe("loaded");
    second[Symbol.dispose]();
    await clock.advance(1);
    expect((await models.get(MINI)).state).toBe("available");
  });
});

describe("unload()", () => {
  it("with onlyIdle does not unload a leased model", async () => {
    const { models } = await startModels();
    await models.load({ alias: MINI });
    const lease = await models.acquire(MINI, NEVER);
    await expect(models.unload(MINI, { onlyIdle: true })).rejects.toMatchObject({ code: "model_busy" });
    expect(lease.engine.alive).toBe(true);
    lease[Symbol.dispose]();
    await models.unload(MINI, { onlyIdle: true });
    expect((await models.get(MINI)).state).toBe("available");
  });
});

describe("close()", () => {
  it("ends all engines and rejects later requests", async () => {
    const { models, engines } = await startModels({ config: { auto_load: true } });
    await models.load({ alias: MINI });
    await models.close();
    expect(engines.last.alive).toBe(false);
    await expect(models.acquire(MINI, NEVER)).rejects.toMatchObject({ code: "shutting_down" });
    await expect(models.load({ alias: MINI })).rejects.toMatchObject({ code: "shutting_down" });
  });
});
