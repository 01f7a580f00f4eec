import { beforeEach, describe, expect, it } from "vitest";
import { type DeferredStep, deferredSteps } from "../../../../src/engine/core/warm-up.ts";

const NEVER = new AbortController().signal;

let log: string[];
beforeEach(() => {
  log = [];
});

/** Deferred steps with a fake engine that logs its calls. */
function steps(generate: () => Promise<void> = async () => {}): DeferredStep[] {
  const engine: Parameters<typeof deferredSteps>[0] = {
    info: { contextSize: 64 },
    generate: async () => {
      log.push("generates");
      await generate();
    },
    slots: async (request) => {
      log.push(request.action === "erase" ? `erases slot ${request.slot}` : request.action);
      return { action: "erase", tokens: 1 };
    },
  };
  return deferredSteps(engine, { purpose: "generate", batchSize: 16, slots: 2 });
}

describe("a deferred step of the warm-up", () => {
  it("erases its slot", async () => {
    await steps()[0]!({ signal: NEVER, slot: 1 });
    expect(log).toEqual(["generates", "erases slot 1"]);
  });

  it("erases all slots if it was not assigned one", async () => {
    await steps()[0]!({ signal: NEVER });
    expect(log).toEqual(["generates", "erases slot 0", "erases slot 1"]);
  });

  it("erases its slot when it is cancelled", async () => {
    const cancelled = new Error("cancelled");
    const [step] = steps(() => Promise.reject(cancelled));
    await expect(step!({ signal: NEVER, slot: 0 })).rejects.toBe(cancelled);
    expect(log).toEqual(["generates", "erases slot 0"]);
  });
});
