import { expect, test } from "vitest";
import { ServiceError } from "../../../src/errors/service-error.ts";
import { FakeEngine } from "../../support/fake-engine.ts";
import { fakeModel, FakeModels } from "../../support/fake-models.ts";
import { ModelLeases } from "../../../src/inference/model-leases.ts";
import { never } from "./inference-setup.ts";

/** Models of which one alone fits into memory at a time. */
class CrowdedModels extends FakeModels {
  override async acquire(...call: Parameters<FakeModels["acquire"]>): ReturnType<FakeModels["acquire"]> {
    if (this.leases > 0) throw new ServiceError("overloaded", "The memory is full.");
    return await super.acquire(...call);
  }
}

function setUp(): { leases: ModelLeases; models: CrowdedModels } {
  const models = new CrowdedModels([fakeModel()], new FakeEngine());
  return { leases: new ModelLeases(models), models };
}

test("a request gets the memory of those in the background, which have to wait meanwhile", async () => {
  const { leases, models } = setUp();
  const held = new DisposableStack();
  let late: Promise<unknown> | undefined;
  const onYield = (): void => {
    using other = new DisposableStack();
    late ??= leases.acquire({ onYield }, never, other).catch((error: unknown) => error);
    held.dispose();
  };
  await leases.acquire({ onYield }, never, held);
  {
    using before = new DisposableStack();
    await leases.acquire({}, never, before);
    expect(models.leases).toBe(1);
  }
  expect(await late).toMatchObject({ code: "overloaded", retryAfterSecs: 5 });
  using after = new DisposableStack();
  await leases.acquire({ onYield }, never, after);
  expect(models.leases).toBe(1);
});

test("a request whose memory is held by its like is refused", async () => {
  const { leases } = setUp();
  using held = new DisposableStack();
  await leases.acquire({}, never, held);
  using other = new DisposableStack();
  await expect(leases.acquire({}, never, other)).rejects.toMatchObject({ code: "overloaded" });
});
