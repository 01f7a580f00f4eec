import { describe, expect, test } from "vitest";
import { Hono } from "hono";
import { ServiceError } from "../../../../src/errors/service-error.ts";
import type { TimedServiceEvent } from "../../../../src/events/service-events.ts";
import type { AppEnv } from "../../../../src/http/app-env.ts";
import { defaultModelRoutes } from "../../../../src/api/management/default-model-routes.ts";
import type { DefaultModel } from "../../../../src/api/wire/hub.ts";
import { FakeModels, fakeModel } from "../../../support/fake-models.ts";
import { fakeServices } from "../../../support/fake-services.ts";

const entry: DefaultModel = {
  name: "small:1b",
  description: "A small one.",
  size_hint: "1 GB",
  tags: ["chat"],
  from: "hf:owner/small",
  has_thinking: false,
  has_vision: false,
  has_tools: true,
};

function setup(models = new FakeModels()) {
  const services = fakeServices({ models, overrides: { defaultModels: () => [entry] } });
  const app = new Hono<AppEnv>();
  for (const route of defaultModelRoutes(services)) {
    app.on(route.method, route.path, (context) => route.handle(context));
  }
  return { app, models, services };
}

describe("default models", () => {
  test("are returned as a top-level array", async () => {
    const response = await setup().app.request("/api/defaults");
    expect(await response.json()).toEqual([entry]);
  });

  test("use answers immediately, then downloads and loads the model and makes it the default", async () => {
    const { app, models } = setup();
    const loaded = Promise.withResolvers<unknown>();
    const load = models.load.bind(models);
    models.pull = async (name) => {
      models.known.set(name, fakeModel({ alias: name, state: "available" }));
      return { alias: name, repo: "owner/small", sizeBytes: 1 };
    };
    models.load = async (options) => {
      loaded.resolve(options);
      return await load(options);
    };
    const response = await app.request("/api/defaults/small:1b/use", { method: "POST" });
    expect(await response.json()).toEqual({
      status: "loading",
      model: "small:1b",
      message: expect.stringContaining("small:1b"),
    });
    expect(await loaded.promise).toEqual({ alias: "hf:owner/small", setDefault: true });
  });

  test("use of a model on disk does not access the hub", async () => {
    const models = new FakeModels([fakeModel({ alias: entry.from, state: "available" })]);
    models.pull = () => Promise.reject(new ServiceError("hub_unreachable", "No network."));
    const loaded = Promise.withResolvers<unknown>();
    models.load = async (options) => {
      loaded.resolve(options);
      return await models.get(entry.from);
    };
    await setup(models).app.request("/api/defaults/small:1b/use", { method: "POST" });
    expect(await loaded.promise).toEqual({ alias: entry.from, setDefault: true });
  });

  test("use of a loaded model only makes it the default", async () => {
    const models = new FakeModels([fakeModel({ alias: "small" })]);
    models.pull = async () => ({ alias: "small", repo: "owner/small", sizeBytes: 1 });
    const chosen = Promise.withResolvers<string>();
    models.setDefault = async (alias) => chosen.resolve(alias);
    await setup(models).app.request("/api/defaults/small:1b/use", { method: "POST" });
    expect(await chosen.promise).toBe("small");
  });

  test("a failure in the background is reported as an event", async () => {
    const models = new FakeModels();
    models.pull = () => Promise.reject(new ServiceError("hub_unreachable", "No network."));
    const { app, services } = setup(models);
    const failed = Promise.withResolvers<TimedServiceEvent>();
    services.events.subscribe(failed.resolve);
    const response = await app.request("/api/defaults/small:1b/use", { method: "POST" });
    expect(response.status).toBe(200);
    expect(await failed.promise).toMatchObject({
      type: "model-failed",
      model: "small:1b",
      code: "hub_unreachable",
    });
  });

  test("an unknown name returns model_not_found", async () => {
    const { app } = setup();
    let thrown: unknown;
    app.onError((error, context) => {
      thrown = error;
      return context.text("");
    });
    await app.request("/api/defaults/none/use", { method: "POST" });
    expect(thrown).toMatchObject({ code: "model_not_found", status: 404 });
  });
});
