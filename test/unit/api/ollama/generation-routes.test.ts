import { describe, expect, test } from "vitest";
import { optionsSchema, toResidency } from "../../../../src/api/ollama/ollama-options.ts";
import { loadOrUnload, withRequestedContext } from "../../../../src/api/ollama/generation-routes.ts";
import { ServiceError } from "../../../../src/errors/service-error.ts";
import type { Model } from "../../../../src/models/model.ts";
import type { LoadOptions, ModelLease, Residency } from "../../../../src/models/models.ts";
import { FakeEngine } from "../../../support/fake-engine.ts";
import { fakeModel } from "../../../support/fake-models.ts";

const NEVER = new AbortController().signal;
const FOREVER = Number.POSITIVE_INFINITY;

/** Records its calls. unload() fails according to the model's state. */
class RecordingModels {
  readonly calls: unknown[] = [];
  readonly model: Model;
  leases = 0;

  constructor(changes: Partial<Model> = {}) {
    this.model = fakeModel({ contextSize: 512, ...changes });
  }

  acquire = async (
    _name: string | undefined,
    _signal: AbortSignal,
    residency?: Residency,
  ): Promise<ModelLease> => {
    this.calls.push(["acquire", residency]);
    this.leases += 1;
    return {
      model: this.model,
      engine: new FakeEngine(),
      [Symbol.dispose]: () => void (this.leases -= 1),
    };
  };

  unload = async (name: string, options?: { onlyIdle?: boolean }): Promise<void> => {
    if (this.model.state !== "loaded") throw new ServiceError("model_already_unloaded", "It is not loaded.");
    if (options?.onlyIdle && this.model.activeRequests > 0)
      throw new ServiceError("model_busy", "It is in use.");
    this.calls.push(["unload", name]);
  };

  load = async (options: LoadOptions): Promise<Model> => {
    this.calls.push(["load", options]);
    return this.model;
  };
}

const run = async (residency: Residency): Promise<Residency> => residency;

describe("a request without a prompt", () => {
  test("loads the model and keeps no lease", async () => {
    const models = new RecordingModels({ state: "available" });
    const requested = { keepAliveMs: 1000 };
    expect(await loadOrUnload(models, models.model, requested, NEVER)).toBe("load");
    expect(models.calls).toEqual([["acquire", requested]]);
    expect(models.leases).toBe(0);
  });

  test.for<[string, Partial<Model>, unknown[]]>([
    ["unloads an idle model at once", {}, [["unload", "fake"]]],
    ["lets a model in use finish", { activeRequests: 1 }, [["acquire", { keepAliveMs: 0 }]]],
    ["leaves alone what is not loaded", { state: "available" }, []],
  ])("with keep_alive 0 %s", async ([, changes, expected]) => {
    const models = new RecordingModels(changes);
    expect(await loadOrUnload(models, models.model, { keepAliveMs: 0 }, NEVER)).toBe("unload");
    expect(models.calls).toEqual(expected);
    expect(models.leases).toBe(0);
  });
});

describe("a num_ctx larger than the loaded context", () => {
  const larger = { contextSize: 1024 };

  test.for<[string, Partial<Model>, Residency, Residency]>([
    ["without expiry", { expiresAt: undefined }, larger, { ...larger, keepAliveMs: FOREVER }],
    ["for a while", { expiresAt: 5 }, larger, larger],
    ["for as long as is asked", {}, { ...larger, keepAliveMs: 7 }, { ...larger, keepAliveMs: 7 }],
  ])("reloads an idle model without expiry, %s", async ([, changes, requested, expected]) => {
    const models = new RecordingModels(changes);
    expect(await withRequestedContext(models, models.model, requested, run)).toEqual(expected);
    expect(models.calls).toEqual([["unload", "fake"]]);
  });

  test.for<[string, Partial<Model>, Residency]>([
    ["a model in use", { activeRequests: 1 }, larger],
    ["a model that is not loaded", { state: "available" }, larger],
    ["a context that fits", {}, { contextSize: 512 }],
    ["without a requested context", {}, {}],
  ])("does not reload %s", async ([, changes, requested]) => {
    const models = new RecordingModels(changes);
    expect(await withRequestedContext(models, models.model, requested, run)).toEqual(requested);
    expect(models.calls).toEqual([]);
  });

  test.for([
    [
      "insufficient_memory",
      [
        ["unload", "fake"],
        ["load", { alias: "fake", contextSize: 512, gpuLayers: 0 }],
      ],
    ],
    ["context_length_exceeded", [["unload", "fake"]]],
  ] as const)(
    "restores the previous context if the reload fails: after %s %j is loaded",
    async ([code, expected]) => {
      const models = new RecordingModels();
      const fail = (): Promise<never> => Promise.reject(new ServiceError(code, "No."));
      await expect(withRequestedContext(models, models.model, larger, fail)).rejects.toMatchObject({ code });
      expect(models.calls).toEqual(expected);
    },
  );
});

test.for<[object, Residency]>([
  [{}, {}],
  [{ num_ctx: 300 }, { contextSize: 300 }],
  // The model was trained for 2048.
  [{ num_ctx: 100_000 }, { contextSize: 2048 }],
  [{ num_ctx: 1 }, { contextSize: 16 }],
  [{ num_gpu: 5 }, { gpuLayers: 5 }],
  [{ num_gpu: -1 }, {}],
  [{ num_batch: 64, num_keep: 4 }, { load: { batchSize: 64, numKeep: 4 } }],
])("options %j become the load options %j", ([options, expected]) => {
  const residency = toResidency({ options: optionsSchema.parse(options) }, fakeModel());
  expect(JSON.parse(JSON.stringify(residency))).toEqual({ load: {}, ...expected });
});
