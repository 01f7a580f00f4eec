import { expect, test } from "vitest";
import { ServiceError } from "../../../src/errors/service-error.ts";
import { withFleetModels } from "../../../src/fleet/fleet-models.ts";
import { FakeModels } from "../../support/fake-models.ts";

test("a model that others may have is not unknown while they cannot be asked", async () => {
  const missing = new ServiceError("fleet_unreachable", "no NATS server");
  const models = withFleetModels(
    new FakeModels(),
    () => [],
    () => missing,
  );
  await expect(models.get("elsewhere")).rejects.toBe(missing);
});
