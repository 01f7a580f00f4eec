import type { ServiceEvent } from "../../../../src/events/service-events.ts";
import { EnginePool, type EngineLoan } from "../../../../src/models/loading/engine-pool.ts";
import type { LoadRequest } from "../../../../src/models/loading/load-request.ts";
import { FakeClock, FakeEngines } from "./fake-engines.ts";
import { loadRequest } from "./load-requests.ts";

export const MB = 1024 * 1024;
const BUDGET = 100 * MB;
/** A signal that is never aborted. */
export const NEVER = new AbortController().signal;

/** A pool with a budget of 100 MiB, of memory and of the GPU's, on fake engines and a clock that is turned by hand. */
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
    budget: { bytes: BUDGET, reason: "all models together may use 100 MiB" },
    gpuBudget: () => BUDGET,
    events: {
      emit: (event) => {
        events.push(event);
        onEvent();
      },
    },
  });
  return { pool, engines, clock, events };
}

export async function lendAndReturn(
  pool: EnginePool,
  alias: string,
  options?: Partial<LoadRequest>,
): Promise<void> {
  (await pool.lend(alias, loadRequest(options), NEVER))[Symbol.dispose]();
}

export const giveBack = (loan: EngineLoan): void => loan[Symbol.dispose]();
