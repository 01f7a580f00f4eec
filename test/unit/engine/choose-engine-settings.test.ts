import { describe, expect, it } from "vitest";
import {
  canAffordContextPerSlot,
  chooseBatchSize,
  chooseSlots,
  chooseThreads,
  type SettingsInput,
} from "../../../src/engine/choose-engine-settings.ts";

describe("threads of an engine", () => {
  it.each([
    ["one processor", { usable: 1, cores: 1 }, 1],
    ["two cores", { usable: 2, cores: 2 }, 1],
    ["eight cores", { usable: 8, cores: 8 }, 7],
    ["four cores of two processors", { usable: 8, cores: 4 }, 4],
    ["a container's share of a large machine", { usable: 3, cores: 64 }, 2],
    ["a huge machine", { usable: 256, cores: 128 }, 32],
  ])("on %s", (_, processors, expected) => {
    expect(chooseThreads(processors)).toBe(expected);
  });
});

describe("slots of an engine", () => {
  const question = { purpose: "generate", parameters: 5e8, slots: 4, threads: 1, kernels: "stock" } as const;

  it.each<[string, Partial<SettingsInput>, number]>([
    ["two for a medium model on the stock kernels, whose steps are long", {}, 2],
    ["as configured if that is less", { slots: 1 }, 1],
    ["more on more threads", { threads: 4 }, 4],
    ["as configured for a tiny model", { parameters: 4e6 }, 4],
    ["as configured on our kernels", { kernels: "daybreak" }, 4],
    ["as configured for an encoder, whose calls are not cancelled within a text", { purpose: "embed" }, 4],
  ])("are %s", (_what, change, expected) => {
    expect(chooseSlots({ ...question, ...change })).toBe(expected);
  });
});

describe("tokens of one prefill step", () => {
  const question: SettingsInput = {
    purpose: "generate",
    parameters: 5e8,
    contextSize: 4096,
    slots: 4,
    threads: 1,
    bytesPerStepToken: 600_000,
    kernels: "daybreak",
  };

  it.each<[string, Partial<SettingsInput>, number]>([
    ["a model of 500 million weights: as many as fit into 128 MiB", {}, 220],
    ["the same on the stock kernels: at least one per slot", { kernels: "stock" }, 4],
    ["the same with two slots", { kernels: "stock", slots: 2 }, 2],
    [
      "the same with one slot: two, because llama.cpp aborts on steps of one token",
      { kernels: "stock", slots: 1 },
      2,
    ],
    ["the same on sixteen threads", { kernels: "stock", threads: 16 }, 20],
    ["a tiny model", { bytesPerStepToken: 4000 }, 512],
    ["a tiny model with a tiny context", { bytesPerStepToken: 4000, contextSize: 128 }, 128],
    ["a large model with a large context", { bytesPerStepToken: 20_000_000, contextSize: 131_072 }, 16],
    [
      "an encoder: the full context, because a text cannot be split",
      { purpose: "embed", contextSize: 2048 },
      2048,
    ],
    [
      "an encoder with a huge context: the maximum batch size",
      { purpose: "rerank", contextSize: 100_000 },
      8192,
    ],
  ])("for %s", (_what, change, expected) => {
    expect(chooseBatchSize({ ...question, ...change })).toBe(expected);
  });
});

describe("a context for each slot", () => {
  const GIB = 1024 ** 3;
  const question = {
    purpose: "generate",
    contextSize: 4096,
    slots: 4,
    kvBytesPerToken: 12_288,
    memory: 16 * GIB,
  } as const;

  it.each<[string, Partial<Parameters<typeof canAffordContextPerSlot>[0]>, boolean]>([
    ["a model of half a billion weights", {}, true],
    ["a cache of a gibibyte", { kvBytesPerToken: 65_536 }, true],
    ["a larger one", { kvBytesPerToken: 65_537 }, false],
    ["a larger one on a huge machine", { kvBytesPerToken: 65_537, memory: 512 * GIB }, false],
    ["a sixteenth of a small machine", { memory: 3 * GIB }, true],
    ["more than a sixteenth of a small machine", { memory: 2.9 * GIB }, false],
    ["a model without a KV cache", { kvBytesPerToken: 0 }, true],
    ["a single slot", { slots: 1 }, false],
    ["an encoder", { purpose: "embed", kvBytesPerToken: 0 }, false],
    ["a reranker", { purpose: "rerank", kvBytesPerToken: 0 }, false],
  ])("is affordable or not for %s", (_what, change, expected) => {
    expect(canAffordContextPerSlot({ ...question, ...change })).toBe(expected);
  });
});
