import { expect, test } from "vitest";
import { ServiceError } from "../../../src/errors/service-error.ts";
import { withFleetModels } from "../../../src/fleet/fleet-models.ts";
import { FakeModels } from "../../support/fake-models.ts";
import { heartbeat, memberInfo, memberModel } from "../../support/fleet-wire.ts";

test("reports an unreachable fleet instead of an unknown model", async () => {
  const missing = new ServiceError("fleet_unreachable", "no NATS server");
  const models = withFleetModels(
    new FakeModels(),
    () => [],
    () => missing,
  );
  await expect(models.get("elsewhere")).rejects.toBe(missing);
});

test("names the machines of a remote model that cannot be managed here", async () => {
  const unknown = new ServiceError("model_not_found", "unknown");
  const local = new FakeModels();
  local.delete = async () => await Promise.reject(unknown);
  local.unload = async () => await Promise.reject(unknown);
  local.load = async () => await Promise.reject(unknown);
  const attic = {
    info: memberInfo("attic", { models: [memberModel("far")] }),
    heartbeat: heartbeat("attic"),
  };
  const models = withFleetModels(
    local,
    () => [attic],
    () => undefined,
  );
  const message = expect.stringMatching(/"far".*\(attic\)/);
  await expect(models.delete("far")).rejects.toMatchObject({ code: "model_not_found", message });
  await expect(models.unload("far")).rejects.toMatchObject({ code: "model_not_found", message });
  await expect(models.load({ alias: "far" })).rejects.toMatchObject({ code: "model_not_found", message });
  await expect(models.unload("nowhere")).rejects.toBe(unknown);
});
