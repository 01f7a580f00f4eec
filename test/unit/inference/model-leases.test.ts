import { expect, test } from "vitest";
import { ServiceError } from "../../../src/errors/service-error.ts";
import { FakeEngine } from "../../support/fake-engine.ts";
import { fakeModel, FakeModels } from "../../support/fake-models.ts";
import { ModelLeases } from "../../../src/inference/model-leases.ts";
import { never } from "./inference-setup.ts";

/** Models of which only one fits into memory. */
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

test("a request gets the memory of low-priority requests, which are refused meanwhile", async () => {
  const { leases, models } = setUp();
  const held = new DisposableStack();
  let late: Promise<unknown> | undefined;
  const onPreempt = (): void => {
    using other = new DisposableStack();
    late ??= leases.acquire({ onPreempt }, never, other).catch((error: unknown) => error);
    held.dispose();
  };
  await leases.acquire({ onPreempt }, never, held);
  {
    using before = new DisposableStack();
    await leases.acquire({}, never, before);
    expect(models.leases).toBe(1);
  }
  expect(await late).toMatchObject({ code: "overloaded", retryAfterSecs: 5 });
  using after = new DisposableStack();
  await leases.acquire({ onPreempt }, never, after);
  expect(models.leases).toBe(1);
});

test("a request is refused if requests of the same priority use the memory", async () => {
  const { leases } = setUp();
  using held = new DisposableStack();
  await leases.acquire({}, never, held);
  using other = new DisposableStack();
  await expect(leases.acquire({}, never, other)).rejects.toMatchObject({ code: "overloaded" });
});
