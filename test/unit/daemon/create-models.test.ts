import { describe, expect, test } from "vitest";
import { configSchema, type ConfigInput } from "../../../src/config/schema.ts";
import { loadFirstModels } from "../../../src/daemon/create-models.ts";
import { ServiceError } from "../../../src/errors/service-error.ts";
import {
  reportFailure,
  type ServiceEvents,
  type TimedServiceEvent,
} from "../../../src/events/service-events.ts";
import type { LoadOptions } from "../../../src/models/models.ts";
import { FakeModels, fakeModel } from "../../support/fake-models.ts";
import { fakeServices } from "../../support/fake-services.ts";

const FILE = "/somewhere/own.gguf";

async function loadAtStart(
  models: FakeModels,
  config: ConfigInput,
  prepare: (events: ServiceEvents) => void = () => {},
) {
  const services = fakeServices({ models, overrides: { config: configSchema.parse(config) } });
  const events: TimedServiceEvent[] = [];
  services.events.subscribe((event) => events.push(event));
  prepare(services.events);
  await loadFirstModels(services);
  return { loads: models.loads.map(({ alias }) => alias), events };
}

/** Registers a file when its path is loaded, as the real service does. */
class ModelsThatRegisterFiles extends FakeModels {
  override async load(options: LoadOptions) {
    if (options.alias === FILE) this.known.set(FILE, fakeModel({ alias: FILE, state: "available" }));
    return await super.load(options);
  }
}

describe("loadFirstModels", () => {
  test("loads a path that is not registered", async () => {
    const { loads, events } = await loadAtStart(new ModelsThatRegisterFiles(), { models: { load: [FILE] } });
    expect(loads).toEqual([FILE]);
    expect(events).toEqual([]);
  });

  test("ignores a model that is named twice", async () => {
    const models = new FakeModels([fakeModel({ alias: "a", state: "available" })]);
    const { events } = await loadAtStart(models, { models: { load: ["a", "a"] } });
    expect(events).toEqual([]);
  });

  test("reports a model that cannot be loaded and continues", async () => {
    const models = new FakeModels([fakeModel({ alias: "b", state: "available" })]);
    const { loads, events } = await loadAtStart(models, { models: { load: ["missing", "b"] } });
    expect(loads).toEqual(["missing", "b"]);
    expect(events).toMatchObject([{ type: "model-failed", model: "missing", code: "model_not_found" }]);
  });

  test("reports a failure once if the models service has reported it", async () => {
    const failure = new ServiceError("invalid_model_file", "The model file cannot be used.");
    const models = new FakeModels([fakeModel({ alias: "damaged", state: "available" })]);
    const { events } = await loadAtStart(models, { models: { load: ["damaged"] } }, (service) => {
      models.load = async () => {
        reportFailure(service, "damaged", failure);
        return await Promise.reject(failure);
      };
    });
    expect(events).toMatchObject([{ type: "model-failed", model: "damaged", code: "invalid_model_file" }]);
  });

  test("reports equal failures of two models separately", async () => {
    const models = new FakeModels([]);
    const { events } = await loadAtStart(models, { models: { load: ["a", "b"] } }, () => {
      models.load = async () =>
        await Promise.reject(new ServiceError("invalid_model_file", "It is damaged."));
    });
    expect(events).toMatchObject([
      { type: "model-failed", model: "a" },
      { type: "model-failed", model: "b" },
    ]);
  });
});
