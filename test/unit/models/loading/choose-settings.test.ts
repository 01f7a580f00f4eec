import { expect, test } from "vitest";
import { choosePromptCache } from "../../../../src/models/loading/choose-settings.ts";
import { loadPlan } from "./load-plans.ts";

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;

const { spec: SPEC } = loadPlan({ contextSize: 4096 });
const QUESTION: Parameters<typeof choosePromptCache>[0] = {
  spec: SPEC,
  kvBytesPerToken: 1024,
  kernels: "daybreak",
  configured: -1,
  freeBytes: 8 * GIB,
};

test.each([
  ["four contexts", {}, 16 * MIB],
  ["at most 1 GiB", { kvBytesPerToken: 256 * 1024, freeBytes: 100 * GIB }, GIB],
  ["an eighth of the free memory", { freeBytes: 80 * MIB }, 10 * MIB],
  ["nothing if no memory is free", { freeBytes: -GIB }, undefined],
  ["the configured bytes", { configured: 3 * MIB, freeBytes: 0 }, 3 * MIB],
  ["nothing when it is off", { configured: 0 }, undefined],
  ["nothing with the stock kernels", { kernels: "stock", configured: MIB }, undefined],
  ["nothing for a model that does not generate", { spec: { ...SPEC, purpose: "embed" } }, undefined],
  ["nothing for a context that shifts", { spec: { ...SPEC, contextShift: true } }, undefined],
  ["nothing with cache reuse by shifting", { spec: { ...SPEC, cacheReuse: 64 } }, undefined],
  [
    "nothing with a draft model",
    { spec: { ...SPEC, draft: { path: "/draft.gguf", kvBytesPerToken: 1 } } },
    undefined,
  ],
] as const)("the prompt cache gets %s", (_, change, bytes) => {
  expect(choosePromptCache({ ...QUESTION, ...change })).toBe(bytes);
});
