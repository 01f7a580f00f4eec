import { describe, expect, test } from "vitest";
import { configuredAllowance, type MachineMemory } from "../../../../src/models/loading/available-memory.ts";
import { EnginePool } from "../../../../src/models/loading/engine-pool.ts";
import { FakeClock } from "../../../support/fake-clock.ts";
import { FakeEngines } from "../../../support/fake-engine.ts";
import { loadPlan } from "./load-plans.ts";
import { describe as describeLoaded, MB } from "./make-pool.ts";

/** A container of 300 MiB, of which the daemon uses 90, other programs 10, and engines a given part. */
function container(engineBytes: () => number): () => MachineMemory {
  return () => ({
    limits: [
      { name: "this machine", bytes: 8000 * MB, usedBytes: 1000 * MB },
      { name: "this container (memory.max)", bytes: 300 * MB, usedBytes: 100 * MB + engineBytes() },
    ],
    daemonBytes: 90 * MB,
    engineBytes: engineBytes(),
  });
}

function poolIn(machine: () => MachineMemory): EnginePool {
  return new EnginePool({
    startEngine: new FakeEngines().start,
    clock: new FakeClock(),
    describe: describeLoaded,
    budget: configuredAllowance(0, 300 * MB),
    memory: { machine, gpuBudget: () => 0 },
    events: { emit: () => {} },
  });
}

const needing = (bytes: number, mayEvict = false) => loadPlan({ bytes: bytes * MB, gpuBytes: 0, mayEvict });

describe("the memory available to engines", () => {
  test("is reduced by the daemon and other programs, and the error names each amount", async () => {
    const pool = poolIn(container(() => 0));
    await expect(pool.load("a", needing(201))).rejects.toMatchObject({
      code: "insufficient_memory",
      message:
        "The model a needs about 201 MiB: of the 300 MiB of this container (memory.max) the daemon takes 90 MiB and other programs 10 MiB, which leaves 200 MiB for models. A smaller context or a smaller quantization may fit.",
    });
    await pool.load("b", needing(200));
    await pool.close();
  });

  test("counts an engine's use once, as a part of its reservation", async () => {
    let engineBytes = 0;
    const pool = poolIn(container(() => engineBytes));
    await pool.load("a", needing(120));
    engineBytes = 60 * MB;
    await expect(pool.load("b", needing(81))).rejects.toMatchObject({
      code: "insufficient_memory",
      message: expect.stringMatching(
        /needs about 81 MiB, and only 80 MiB of 200 MiB are free: of the 300 MiB/,
      ),
    });
    await pool.load("b", needing(80));
    await pool.close();
  });

  test("is reduced by what an engine uses beyond its reservation", async () => {
    const pool = poolIn(container(() => 150 * MB));
    await pool.load("a", needing(40)).catch(() => undefined);
    await expect(pool.load("b", needing(60))).rejects.toMatchObject({ code: "insufficient_memory" });
    await pool.close();
  });

  test("includes that of idle models if those may be evicted", async () => {
    const pool = poolIn(container(() => 0));
    await pool.load("a", needing(120));
    await pool.load("b", needing(150, true));
    expect(pool.models().map(({ alias }) => alias)).toEqual(["b"]);
    await pool.close();
  });
});
