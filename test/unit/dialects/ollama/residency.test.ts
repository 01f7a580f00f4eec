import { describe, expect, test } from "vitest";
import { optionsSchema, toResidency } from "../../../../src/dialects/ollama/options.ts";
import { fitContext, loadOrUnload } from "../../../../src/dialects/ollama/residency.ts";
import { ServiceError } from "../../../../src/errors/service-error.ts";
import type { Model, ModelLease, Residency } from "../../../../src/models/model.ts";
import { FakeEngine, fakeModel } from "../../inference/fake-engine.ts";

const NEVER = new AbortController().signal;

/** Notes what is asked of the models. */
class NotingModels {
  readonly asked: unknown[] = [];
  readonly model: Model;
  leases = 0;

  constructor(model: Model) {
    this.model = model;
  }

  acquire = async (
    _name: string | undefined,
    _signal: AbortSignal,
    residency?: Residency,
  ): Promise<ModelLease> => {
    this.asked.push(["acquire", residency]);
    this.leases += 1;
    return {
      model: this.model,
      engine: new FakeEngine(),
      [Symbol.dispose]: () => void (this.leases -= 1),
    };
  };

  unload = async (name: string): Promise<void> => {
    this.asked.push(["unload", name]);
  };
}

describe("a request without a prompt", () => {
  test("loads the model and keeps no lease", async () => {
    const models = new NotingModels(fakeModel({ state: "available" }));
    const wish = { keepAliveMs: 1000 };
    expect(await loadOrUnload(models, models.model, wish, NEVER)).toBe("load");
    expect(models.asked).toEqual([["acquire", wish]]);
    expect(models.leases).toBe(0);
  });

  test("with keep_alive 0 unloads an idle model at once", async () => {
    const models = new NotingModels(fakeModel());
    expect(await loadOrUnload(models, models.model, { keepAliveMs: 0 }, NEVER)).toBe("unload");
    expect(models.asked).toEqual([["unload", "fake"]]);
  });

  test("with keep_alive 0 lets a model that is in use finish", async () => {
    const models = new NotingModels(fakeModel({ activeRequests: 1 }));
    expect(await loadOrUnload(models, models.model, { keepAliveMs: 0 }, NEVER)).toBe("unload");
    expect(models.asked).toEqual([["acquire", { keepAliveMs: 0 }]]);
    expect(models.leases).toBe(0);
  });

  test("with keep_alive 0 leaves alone what is not loaded, or not any more", async () => {
    const models = new NotingModels(fakeModel({ state: "available" }));
    expect(await loadOrUnload(models, models.model, { keepAliveMs: 0 }, NEVER)).toBe("unload");
    expect(models.asked).toEqual([]);
    const gone = new NotingModels(fakeModel());
    gone.unload = () => Promise.reject(new ServiceError("model_already_unloaded", "It is not loaded."));
    expect(await loadOrUnload(gone, gone.model, { keepAliveMs: 0 }, NEVER)).toBe("unload");
  });
});

describe("a context that is larger than the loaded one", () => {
  const larger = { contextSize: 1024 };

  test("has an idle model loaded anew, for as long as it was to stay", async () => {
    const forGood = new NotingModels(fakeModel({ expiresAt: undefined }));
    expect(await fitContext(forGood, forGood.model, larger)).toEqual({
      ...larger,
      keepAliveMs: Number.POSITIVE_INFINITY,
    });
    expect(forGood.asked).toEqual([["unload", "fake"]]);
    const forAWhile = new NotingModels(fakeModel({ expiresAt: 5 }));
    expect(await fitContext(forAWhile, forAWhile.model, larger)).toEqual({
      ...larger,
      keepAliveMs: undefined,
    });
    const asAsked = new NotingModels(fakeModel());
    expect(await fitContext(asAsked, asAsked.model, { ...larger, keepAliveMs: 7 })).toEqual({
      ...larger,
      keepAliveMs: 7,
    });
  });

  test.for<[string, Partial<Model>, Residency]>([
    ["a model in use", { activeRequests: 1 }, larger],
    ["a model that is not loaded", { state: "available" }, larger],
    ["a context that fits", {}, { contextSize: 512 }],
    ["no wish for a context", {}, {}],
  ])("leaves %s as it is", async ([, changes, wish]) => {
    const models = new NotingModels(fakeModel(changes));
    expect(await fitContext(models, models.model, wish)).toEqual(wish);
    expect(models.asked).toEqual([]);
  });
});

test.for<[object, Residency]>([
  [{}, {}],
  [{ num_ctx: 300 }, { contextSize: 300 }],
  // The model was trained for 512.
  [{ num_ctx: 100_000 }, { contextSize: 512 }],
  [{ num_ctx: 1 }, { contextSize: 16 }],
  [{ num_gpu: 5 }, { gpuLayers: 5 }],
  [{ num_gpu: -1 }, {}],
])("options %j ask for %j", ([options, expected]) => {
  const residency = toResidency({ options: optionsSchema.parse(options) }, fakeModel());
  expect(JSON.parse(JSON.stringify(residency))).toEqual(expected);
});
