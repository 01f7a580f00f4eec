import type { ServiceEvent } from "../../../../src/events/service-events.ts";
import { describeModel } from "../../../../src/models/describe-model.ts";
import { EnginePool } from "../../../../src/models/loading/engine-pool.ts";
import type { Lease, LoadedModel } from "../../../../src/models/loading/loaded-model.ts";
import type { LoadPlan } from "../../../../src/models/loading/load-planner.ts";
import type { Model } from "../../../../src/models/model.ts";
import { FakeClock } from "../../../support/fake-clock.ts";
import { FakeEngines } from "../../../support/fake-engine.ts";
import { loadPlan } from "./load-plans.ts";

export const MB = 1024 * 1024;
const BUDGET = 100 * MB;
/** A signal that is never aborted. */
export const NEVER = new AbortController().signal;

/** Creates a pool with 100 MiB of memory and of GPU memory, fake engines and a clock that the test sets. */
export function makePool(onEvent: () => void = () => {}): {
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
    describe,
    budget: { bytes: BUDGET, reason: "all models together may use 100 MiB" },
    memory: { gpuBudget: () => BUDGET },
    events: {
      emit: (event) => {
        events.push(event);
        onEvent();
      },
    },
  });
  return { pool, engines, clock, events };
}

export async function leaseAndReturn(
  pool: EnginePool,
  alias: string,
  options?: Partial<LoadPlan>,
): Promise<void> {
  (await pool.lease(alias, async () => loadPlan(options), NEVER))[Symbol.dispose]();
}

export const release = (lease: Lease): void => lease[Symbol.dispose]();

/** Describes a model of a pool without a registry. */
export function describe(loaded: LoadedModel): Model {
  return describeModel(loaded.plan.record, {
    loaded,
    isDefault: false,
    isPulling: false,
    expected: () => ({ contextSize: 0, loadSettings: {} }),
    memoryBytes: undefined,
  });
}
