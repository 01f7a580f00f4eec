import { beforeAll, describe, expect, it } from "vitest";
import { TYPE } from "../../support/dequantize.ts";
import { DOT_MACHINES, type DotMachine } from "../../support/dot-machines.ts";
import { KernelHost } from "../../support/kernel-host.ts";
import { exactActivations, randomWeights } from "../../support/matrix-problems.ts";
import { randoms } from "../../support/randoms.ts";

let here: KernelHost;
const hosts = new Map<DotMachine, KernelHost>();
beforeAll(async () => {
  here = await KernelHost.start();
  for (const machine of DOT_MACHINES) hosts.set(machine, await KernelHost.start({ machine }));
});

const ROWS = 48;
const K = 768;
/** Number of dot products with which the kernels detect the machine. */
const QUESTIONS = 2;

const bitsOf = (values: Float32Array): number[] => [...new Uint32Array(values.buffer)];

describe.each(["Q4_0", "Q8_0", "Q4_K", "Q5_K", "Q6_K", "MXFP4", "IQ4_NL", "IQ4_XS"] as const)(
  "repacked %s weights",
  (type) => {
    /** For each kind of machine: whether its results equal this machine's, and whether its dot product was used. */
    const compare = (columns: number, weights: Uint8Array, activations: Float32Array): string[] => {
      const problem = { type: TYPE[type], weights, rows: ROWS, activations, k: K, backends: 1 };
      const expected = bitsOf(here.multiply(problem).values);
      return [...hosts].map(([machine, host]) => {
        const { values, dots } = host.multiply(problem);
        const bits = bitsOf(values).every((each, at) => each === expected[at]) ? "same" : "other";
        const use = dots >= (ROWS * K * columns) / 16 ? "used" : dots <= QUESTIONS ? "left" : "in part";
        return `${machine}: ${bits} bits, ${use}`;
      });
    };
    const everywhere = ["vpdpbusd: same bits, used", "sdot: same bits, used", "cut off: same bits, left"];

    // One column, two, and groups of four.
    it.each([1, 2, 3, 4, 9])("times %i columns have the same bits on every machine", (columns) => {
      const random = randoms(columns + 100 * TYPE[type]);
      const weights = randomWeights(type, ROWS, K, random).bytes;
      expect(compare(columns, weights, exactActivations(columns, K, random))).toEqual(everywhere);
      const ordinary = Float32Array.from(
        { length: columns * K },
        () => (random() - 0.5) * 10 ** (random() * 4),
      );
      expect(compare(columns, weights, ordinary)).toEqual(everywhere);
    });

    it.each([1, 4])("have the same bits for the largest numbers, in %i columns", (columns) => {
      for (const byte of [0x00, 0xff]) {
        const weights = randomWeights(type, ROWS, K, () => byte / 256).bytes;
        for (const activation of [-127, 127]) {
          const activations = new Float32Array(columns * K).fill(activation);
          expect(compare(columns, weights, activations)).toEqual(everywhere);
        }
      }
    });
  },
);
