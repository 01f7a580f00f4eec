import { beforeEach, describe, expect, it } from "vitest";
import { type LaterStep, laterSteps } from "../../../../src/engine/core/warm-up.ts";

const NEVER = new AbortController().signal;

let log: string[];
beforeEach(() => {
  log = [];
});

/** Steps of an engine that says what it is asked for. */
function steps(generate: () => Promise<void> = async () => {}): LaterStep[] {
  const engine: Parameters<typeof laterSteps>[0] = {
    info: { contextSize: 64 },
    generate: async () => {
      log.push("reads");
      await generate();
    },
    slots: async (asked) => {
      log.push(asked.action === "erase" ? `erases slot ${asked.slot}` : asked.action);
      return { action: "erase", tokens: 1 };
    },
  };
  return laterSteps(engine, { purpose: "generate", batchSize: 16, slots: 2 });
}

describe("a later step of the warm-up", () => {
  it("leaves its slot empty", async () => {
    await steps()[0]!({ signal: NEVER, slot: 1 });
    expect(log).toEqual(["reads", "erases slot 1"]);
  });

  it("empties all slots when it may have used any of them", async () => {
    await steps()[0]!({ signal: NEVER });
    expect(log).toEqual(["reads", "erases slot 0", "erases slot 1"]);
  });

  it("leaves nothing either when a call cancels it", async () => {
    const cancelled = new Error("cancelled");
    const [step] = steps(() => Promise.reject(cancelled));
    await expect(step!({ signal: NEVER, slot: 0 })).rejects.toBe(cancelled);
    expect(log).toEqual(["reads", "erases slot 0"]);
  });
});
