import { describe, expect, it } from "vitest";
import { ServiceError } from "../../../../src/errors/service-error.ts";
import { explainExcess } from "../../../../src/models/loading/load-failures.ts";
import type { LoadPlan } from "../../../../src/models/loading/load-planner.ts";
import { loadPlan } from "./load-plans.ts";

const MIB = 1024 ** 2;
const EXCESS = { promptTokens: 18_211, contextSize: 4096 };

/** A plan for a model that takes 1 MiB, and 64 KiB per token of context. */
function planOf(trained: number, more: Partial<LoadPlan> = {}): LoadPlan {
  const plan = loadPlan({
    contextSource: "default",
    needsOf: ({ contextSize }) => ({ bytes: MIB + contextSize * 64 * 1024, gpuBytes: 0 }),
    ...more,
  });
  return { ...plan, record: { ...plan.record, gguf: { ...plan.record.gguf, contextLength: trained } } };
}

describe("the error for a prompt longer than the context", () => {
  it("begins with the sentence that agents recognize", () => {
    expect(explainExcess(EXCESS, planOf(131_072), 8192 * MIB)).toMatch(
      /^The prompt has 18211 tokens and exceeds the context window: the maximum context length is 4096 tokens \(the default of POST \/api\/models\/load\)\. /,
    );
  });

  it("names a context that would hold the prompt, its memory, and how to get it", () => {
    const text = explainExcess(EXCESS, planOf(131_072), 8192 * MIB);
    expect(text).toContain("A context of 32768 tokens needs about 2049 MiB of memory and fits");
    expect(text).toContain('"daybreak load any --context-size 32768"');
    expect(text).toContain("PARAMETER num_ctx");
    expect(text).toContain("models.context_size");
  });

  it("estimates a larger context with its smaller batches", () => {
    const plan = planOf(131_072, {
      needsOf: ({ contextSize, batchSize }) => ({ bytes: contextSize * batchSize * 1024, gpuBytes: 0 }),
    });
    const now = { ...plan, spec: { ...plan.spec, contextSize: 4096, batchSize: 256 } };
    expect(explainExcess(EXCESS, now, 8192 * MIB)).toContain("needs about 1024 MiB of memory");
  });

  it("suggests the trained context if that is no power of two", () => {
    expect(explainExcess(EXCESS, planOf(20_000), 8192 * MIB)).toContain("A context of 20000 tokens");
  });

  it.each([
    [
      4096,
      /shorten the prompt, or use a model that was trained for more\.$/i,
      /trained for \d+ tokens, which/,
    ],
    [8192, /The model was trained for 8192 tokens, which would not hold it either\./, /needs about/],
  ])("reports that no context would hold the prompt for a model trained for %i", (trained, has, hasNot) => {
    const text = explainExcess(EXCESS, planOf(trained), 8192 * MIB);
    expect(text).toMatch(has);
    expect(text).not.toMatch(hasNot);
  });

  it("suggests the largest context that fits into memory if the needed one does not", () => {
    const text = explainExcess(EXCESS, planOf(131_072), 1100 * MIB);
    expect(text).toContain("A context of 32768 tokens would hold it, but needs about 2049 MiB of memory");
    expect(text).toContain("1100 MiB are free. The largest that fits has 16384 tokens");
    expect(explainExcess(EXCESS, planOf(131_072), 300 * MIB)).toContain("No larger one fits");
  });

  it("reports that no engine can hold the context, if memory is not the limit", () => {
    const plan = planOf(131_072, {
      needsOf: ({ contextSize }) => {
        if (contextSize > 16_384) throw new ServiceError("insufficient_memory", "Too much.");
        return { bytes: MIB, gpuBytes: 0 };
      },
    });
    const text = explainExcess(EXCESS, plan, 8192 * MIB);
    expect(text).toContain("needs more memory than an engine can have");
    expect(text).toContain("The largest that fits has 16384 tokens");
  });
});
