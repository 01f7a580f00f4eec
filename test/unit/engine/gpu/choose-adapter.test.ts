import { expect, test } from "vitest";
import { chooseAdapter } from "../../../../src/engine/gpu/choose-adapter.ts";
import { broken, card, chip, software } from "./adapters.ts";

const best = { powerPreference: "high-performance" } as const;

test("takes what the system prefers, by speed or by power", () => {
  const report = { adapters: [chip, card, software], fastest: card, lowPower: chip };
  expect(chooseAdapter(report, best)).toEqual({ adapter: card });
  expect(chooseAdapter(report, { powerPreference: "low-power" })).toEqual({ adapter: chip });
});

test("takes the first usable one when the system prefers none that is", () => {
  const report = { adapters: [broken, software, chip, card], fastest: broken };
  expect(chooseAdapter(report, best)).toEqual({ adapter: chip });
});

test("takes the one that is named, whatever the case and whatever it is", () => {
  const report = { adapters: [card, chip, software], fastest: card };
  expect(chooseAdapter(report, { ...best, adapter: "radeon" })).toEqual({ adapter: chip });
  expect(chooseAdapter(report, { ...best, adapter: "LLVMPIPE" })).toEqual({ adapter: software });
  expect(chooseAdapter(report, { ...best, adapter: "" })).toEqual({ adapter: card });
});

test("never takes a software adapter by itself, and says how to", () => {
  const choice = chooseAdapter({ adapters: [software], fastest: software }, best);
  expect(choice).toEqual({
    problem:
      "The only adapter, llvmpipe, computes on the CPU itself, and more slowly. If there is a GPU, install its driver; to use llvmpipe anyway, name it in gpu.adapter.",
  });
});

test("says of a real GPU beside a software adapter why it cannot be used", () => {
  const choice = chooseAdapter({ adapters: [broken, software] }, best);
  expect(choice).toEqual({
    problem: expect.stringMatching(
      /^Old Card \(vulkan\): It does not open\. The only other adapter, llvmpipe.*gpu\.adapter/,
    ),
  });
});

test.each([
  [{ adapters: [], problem: "No loader." }, best, "No loader."],
  [{ adapters: [broken] }, best, `Old Card (vulkan): ${broken.problem}`],
  [
    { adapters: [card] },
    { ...best, adapter: "matrox" },
    'No adapter matches "matrox"; available: Big Card (vulkan).',
  ],
  [{ adapters: [broken, card] }, { ...best, adapter: "old" }, `Old Card (vulkan): ${broken.problem}`],
])("says why there is none: %#", (report, wishes, problem) => {
  expect(chooseAdapter(report, wishes)).toEqual({ problem });
});
