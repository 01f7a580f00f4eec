import fs from "node:fs";
import { afterAll, describe, expect, test } from "vitest";
import { measureHostCost, nullSpec } from "../../scripts/bench/gpu/host-cost.ts";
import { findDawn } from "../../src/engine/gpu/probe-gpu.ts";
import { preparedEngine, temporaryFolder, writeModel } from "../support/engine-fixture.ts";
import { need } from "../support/need.ts";
import { tinyLlama } from "../support/tiny-models.ts";

const DAWN = need("Dawn, the optional package webgpu", findDawn() !== undefined);

const folder = temporaryFolder();
afterAll(() => fs.rmSync(folder, { recursive: true }));

describe.skipIf(DAWN.isMissing)(
  `what a step costs the host, on a backend that executes nothing${DAWN.note}`,
  () => {
    test("a token of two blocks takes a bounded number of programs, submissions and calls into Dawn", async () => {
      const engine = await preparedEngine();
      const file = writeModel(folder, "counted", tinyLlama());
      const spec = nullSpec(file, 256, { batchSize: 64, replay: true });
      const task = { engine, tokens: 30, promptTokens: 64, repeats: 1, counts: true };
      const [{ decode, prefill }] = await Promise.all([
        measureHostCost({ ...task, spec }),
        // llama.cpp would silently use the CPU.
        expect(
          measureHostCost({ ...task, spec: { ...spec, gpu: { ...spec.gpu!, name: "No such adapter" } } }),
        ).rejects.toThrow("no layer is on the GPU"),
      ]);
      // Includes prefill and the end of the answer. Without replay llama.cpp makes twice as many calls.
      expect(decode.submissions).toBe(2);
      // llama.cpp has 42 operations, 17 of which are fused.
      expect(decode.programs).toBeGreaterThan(24);
      expect(decode.programs).toBeLessThan(30);
      expect(decode.calls).toBeLessThanOrEqual(125);
      expect(decode.imports).toBeLessThanOrEqual(33);
      expect(prefill).toMatchObject({ programs: 32, submissions: 2 });
      expect(prefill.imports).toBeLessThanOrEqual(33);
    });
  },
);
