import { expect, it } from "vitest";
import type { Engine } from "../../../../src/engine/engine.ts";
import { ServiceError } from "../../../../src/errors/service-error.ts";
import { EnginePool } from "../../../../src/models/loading/engine-pool.ts";
import type { LoadPlan } from "../../../../src/models/loading/load-planner.ts";
import { FakeClock, settle } from "../../../support/fake-clock.ts";
import { type FakeEngine, FakeEngines } from "../../../support/fake-engine.ts";
import { loadPlan } from "./load-plans.ts";
import { describe } from "./make-pool.ts";
import { randomNumbers } from "../../../support/random-numbers.ts";

const MB = 1024 * 1024;
const BUDGET = 100 * MB;
const ALIASES = ["a", "b", "c", "d"];
const STEPS = 400;

interface Storm {
  readonly pool: EnginePool;
  readonly clock: FakeClock;
  readonly random: () => number;
  /** Results of all requests: undefined, or the error. */
  readonly outcomes: Promise<unknown>[];
  readonly living: Map<FakeEngine, LoadPlan>;
}

/** Starts a random request without waiting for it. */
async function step({ pool, clock, random, outcomes, living }: Storm): Promise<void> {
  const alias = ALIASES[Math.floor(random() * ALIASES.length)] ?? "a";
  const plan = loadPlan({ bytes: (20 + Math.floor(random() * 4) * 10) * MB, keepAliveMs: 500 });
  const named = { ...plan, record: { ...plan.record, alias } };
  const client = new AbortController();
  const watch = (request: Promise<unknown>): void => {
    outcomes.push(
      request.then(
        () => undefined,
        (error: unknown) => error,
      ),
    );
  };
  switch (Math.floor(random() * 7)) {
    case 0:
      watch(pool.load(alias, named, client.signal));
      break;
    case 1:
    case 2:
      watch(pool.lease(alias, async () => named, client.signal).then((lease) => void release(lease, random)));
      break;
    case 3:
      watch(pool.unload(alias, "request"));
      break;
    case 4:
      watch([...living.keys()][0]?.crash() ?? Promise.resolve());
      break;
    case 5:
      await clock.advance(200);
      break;
    default:
      await settle();
  }
  if (random() < 0.2) client.abort(new ServiceError("shutting_down", "The client has gone."));
}

async function release(lease: Disposable, random: () => number): Promise<void> {
  for (let wait = Math.floor(random() * 4); wait > 0; wait--) await settle();
  lease[Symbol.dispose]();
}

it.each([1, 2, 3, 4, 5])(
  "the engine pool keeps its invariants in any order of events: seed %i",
  async (seed) => {
    const random = randomNumbers(seed);
    const engines = new FakeEngines();
    const clock = new FakeClock();
    const living = new Map<FakeEngine, LoadPlan>();
    const broken: string[] = [];
    const pool: EnginePool = new EnginePool({
      clock,
      describe,
      budget: { bytes: BUDGET, reason: "all models together may use 100 MiB" },
      memory: { gpuBudget: () => Number.POSITIVE_INFINITY },
      events: { emit: () => {} },
      startEngine: async (spec, options): Promise<Engine> => {
        for (let wait = Math.floor(random() * 3); wait > 0; wait--) await settle();
        options?.signal?.throwIfAborted();
        if (random() < 0.1) throw new ServiceError("model_load_failed", "It does not want to.");
        const model = pool.models().find(({ plan }) => plan.spec === spec);
        if (!model) throw new Error("an engine is started for nobody");
        await engines.start(spec, options);
        const engine = engines.last;
        engine.untilEnded = settle();
        living.set(engine, model.plan);
        void engine.exited.then(() => living.delete(engine));
        const aliases = [...living.values()].map(({ record }) => record.alias);
        if (new Set(aliases).size < aliases.length)
          broken.push(`two engines of one model: ${aliases.join()}`);
        const bytes = [...living.values()].reduce((sum, plan) => sum + plan.bytes, 0);
        if (bytes > BUDGET) broken.push(`${bytes} bytes in use`);
        return engine;
      },
    });
    const storm: Storm = { pool, clock, random, outcomes: [], living };

    for (let count = 0; count < STEPS; count++) await step(storm);
    const errors = (await Promise.all(storm.outcomes)).filter((outcome) => outcome !== undefined);
    for (let wait = 0; wait < 10; wait++) await settle();
    const leases = pool.models().map(({ users }) => users);
    await pool.close();

    expect(broken).toEqual([]);
    expect(leases.every((count) => count === 0)).toBe(true);
    expect(living.size).toBe(0);
    expect(errors.filter((error) => !(error instanceof ServiceError))).toEqual([]);
  },
);
