import { expect, it } from "vitest";
import { TYPE } from "../../support/dequantize.ts";
import { KernelHost } from "../../support/kernel-host.ts";
import {
  exactActivations,
  F32_TOLERANCE,
  randomWeights,
  reference,
  worstError,
} from "../../support/matrix-problems.ts";
import { randoms } from "../../support/randoms.ts";

const FOUR_GIB = 2 ** 32;
const PAGE_BYTES = 65_536;
const [ROWS, K] = [32, 512];

// Only touched pages of the memory are resident.
it.each(["Q4_0", "Q8_0", "Q4_K", "Q6_K", "Q5_0", "F16"] as const)(
  "%s weights are multiplied where they lie above 4 GiB, and across that border",
  async (type) => {
    for (const from of [FOUR_GIB - 4096, FOUR_GIB + PAGE_BYTES]) {
      const host = await KernelHost.start({ pages: FOUR_GIB / PAGE_BYTES + 1024, from });
      for (const columns of [1, 5, 16]) {
        const random = randoms(columns);
        const weights =
          type === "F16"
            ? {
                bytes: new Uint8Array(new Uint16Array(ROWS * K).fill(0x3400).buffer),
                values: Array.from({ length: ROWS * K }, () => 0.25),
              }
            : randomWeights(type, ROWS, K, random);
        const activations = exactActivations(columns, K, random);
        const problem = {
          type: TYPE[type],
          weights: weights.bytes,
          rows: ROWS,
          activations,
          k: K,
          backends: 1,
        };
        const { values, fellBack } = host.multiply(problem);
        expect(fellBack).toBe(false);
        expect(worstError(values, reference(weights.values, activations, ROWS, K))).toBeLessThan(
          F32_TOLERANCE,
        );
      }
    }
  },
);
