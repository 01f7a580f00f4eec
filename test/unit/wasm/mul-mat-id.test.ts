import { describe, expect, it } from "vitest";
import { DOT_MACHINES } from "../../support/dot-machines.ts";
import { halfToNumber, TYPE } from "../../support/dequantize.ts";
import { ExpertHost, type ExpertProblem } from "../../support/expert-host.ts";
import {
  type Blocks,
  BLOCK_TYPES,
  exactActivations,
  F32_TOLERANCE,
  randomWeights,
  reference,
  worstError,
} from "../../support/matrix-problems.ts";
import { randoms } from "../../support/randoms.ts";

const REPACKED = [
  "Q4_0",
  "Q8_0",
  "Q4_K",
  "Q5_K",
  "Q6_K",
  "MXFP4",
  "IQ4_NL",
  "IQ4_XS",
] as const satisfies Blocks[];
const EXPERTS = 9;
/** One chunk of 64 rows, and a part of one. */
const ROWS = 80;
const K = 512;
const host = await ExpertHost.start();
const machines = await Promise.all(
  DOT_MACHINES.map(async (machine) => [machine, await ExpertHost.start(machine)] as const),
);

interface Choice {
  /** Columns of activations per token. */
  readonly columns?: number;
  /** Experts per token. */
  readonly used?: number;
  readonly tokens: number;
  readonly rows?: number;
  readonly experts?: number;
  /** Expert of a token at an index; absent: some of a few, so that others get no token. */
  readonly expertOf?: (token: number, place: number) => number;
}

const made = new Map<string, ReturnType<typeof randomWeights>>();
/** Random weights, made once for all tests. */
function weightsOf(type: Blocks, rows: number): ReturnType<typeof randomWeights> {
  const key = `${type} ${rows}`;
  const weights = made.get(key) ?? randomWeights(type, rows, K, randoms(TYPE[type]));
  made.set(key, weights);
  return weights;
}

/** A product like those of models loaded on the CPU, and its results. */
function problemOf(type: Blocks, choice: Choice) {
  const { used = 1, columns = 1, tokens, rows = ROWS, experts = EXPERTS } = choice;
  const expertOf = choice.expertOf ?? ((token, place) => (token * token + 3 * place) % (experts - 1));
  const random = randoms(tokens + 100 * TYPE[type]);
  const { bytes: weights, values } = weightsOf(type, experts * rows);
  const activations = exactActivations(tokens * columns, K, random);
  const chosen = Array.from({ length: tokens }, (_, token) =>
    Array.from({ length: used }, (__, place) => expertOf(token, place)),
  );
  const expected = chosen.flatMap((ofToken, token) =>
    ofToken.flatMap((expert, place) => {
      const matrix = values.slice(expert * rows * K, (expert + 1) * rows * K);
      const at = (token * columns + (place % columns)) * K;
      return reference(matrix, activations.subarray(at, at + K), rows, K);
    }),
  );
  const problem = { type: TYPE[type], weights, experts, rows, k: K, activations, chosen, backends: 1 };
  return { problem: problem satisfies ExpertProblem, expected };
}

function areSame(some: Uint8Array, others: Uint8Array): boolean {
  return some.length === others.length && some.every((byte, at) => byte === others[at]);
}

/** Results; undefined if the kernels leave the product to llama.cpp. */
async function multiply(problem: ExpertProblem, by = host): Promise<Float32Array | undefined> {
  const prepared = by.prepare(problem);
  return (await prepared.run()) ? prepared.read() : undefined;
}

describe.each(REPACKED)("experts of repacked %s weights", (type) => {
  // One token, experts with one, two and three tokens, and experts with groups of four and more.
  it.each([1, 2, 5, 33])("times the columns of %i tokens equal the plain definition", async (tokens) => {
    for (const [used, columns] of [
      [1, 1],
      [2, 1],
      [2, 2],
      [8, 1],
      [8, 8],
    ] as const) {
      const { problem, expected } = problemOf(type, { used, columns, tokens });
      const prepared = host.prepare(problem);
      expect(areSame(prepared.weights(), problem.weights)).toBe(false);
      expect(await prepared.run()).toBe(true);
      expect(worstError(prepared.read(), expected)).toBeLessThan(F32_TOLERANCE);
    }
  });

  it("equal it if one expert gets all tokens", async () => {
    const { problem, expected } = problemOf(type, { tokens: 21, expertOf: () => EXPERTS - 1 });
    expect(worstError((await multiply(problem))!, expected)).toBeLessThan(F32_TOLERANCE);
  });

  it("have the same bits on two threads", async () => {
    const { problem } = problemOf(type, { tokens: 9, used: 4, columns: 4 });
    const alone = await multiply(problem);
    expect(await multiply({ ...problem, threads: 2 })).toEqual(alone);
  });

  it("have the same bits for a token alone and among others", async () => {
    const { problem } = problemOf(type, { tokens: 7, used: 2, expertOf: (_, place) => 3 * place });
    const together = (await multiply(problem))!;
    for (const token of [0, 3, 6]) {
      const activations = problem.activations.slice(token * K, (token + 1) * K);
      const alone = await multiply({ ...problem, activations, chosen: [problem.chosen[token]!] });
      expect(alone).toEqual(together.slice(token * 2 * ROWS, (token + 1) * 2 * ROWS));
    }
  });

  it("are restored permanently when a graph uses them in another way", async () => {
    const { problem, expected } = problemOf(type, { tokens: 3, used: 2 });
    const prepared = host.prepare(problem);
    prepared.planBatch();
    expect(areSame(prepared.weights(), problem.weights)).toBe(true);
    prepared.reserve();
    expect(areSame(prepared.weights(), problem.weights)).toBe(true);
    expect(await prepared.run()).toBe(true);
    expect(worstError(prepared.read(), expected)).toBeLessThan(F32_TOLERANCE);
  });

  it("end the engine instead of reading an unknown expert", async () => {
    for (const expert of [-1, EXPERTS, 2 ** 31 - 1]) {
      const { problem } = problemOf(type, { tokens: 2 });
      await expect(multiply({ ...problem, chosen: [[0], [expert]] })).rejects.toThrow(
        WebAssembly.RuntimeError,
      );
    }
  });

  it.each(machines)("have the same bits with the byte products of %s", async (_, machine) => {
    const { problem } = problemOf(type, { tokens: 5, used: 2 });
    expect(await multiply(problem, machine)).toEqual(await multiply(problem));
  });
});

describe.each(BLOCK_TYPES)("experts of %s weights in the file's layout", (type) => {
  it("times the columns of some tokens equal the plain definition", async () => {
    for (const [tokens, rows] of [
      [1, 20],
      [2, ROWS],
      [33, 20],
    ] as const) {
      const { problem, expected } = problemOf(type, { tokens, used: 3, columns: 3, rows });
      const prepared = host.prepare({ ...problem, backends: 2 });
      expect(areSame(prepared.weights(), problem.weights)).toBe(true);
      expect(await prepared.run()).toBe(true);
      expect(worstError(prepared.read(), expected)).toBeLessThan(F32_TOLERANCE);
    }
  });
});

describe("products of experts", () => {
  it("get the work buffer that a long prompt needs, for any format", async () => {
    for (const type of ["Q4_0", "Q5_0"] as const) {
      const { problem } = problemOf(type, { tokens: 1, rows: 16 });
      const chosen = Array.from({ length: 12_000 }, (_, token) => [token % EXPERTS]);
      const activations = new Float32Array(chosen.length * K);
      expect(await multiply({ ...problem, activations, chosen })).toEqual(
        new Float32Array(chosen.length * 16),
      );
    }
  });

  it("are left to llama.cpp if the number of rows is not a multiple of four or the work buffer is too small", async () => {
    expect(await multiply(problemOf("Q4_0", { tokens: 2, rows: 18 }).problem)).toBe(undefined);
    const { problem } = problemOf("Q4_0", { tokens: 2, rows: 20 });
    expect(await multiply({ ...problem, workBytes: 1024 })).toBe(undefined);
  });
});

describe("experts of F32, F16 and BF16 weights", () => {
  const floats = Float32Array.from({ length: EXPERTS * 20 * K }, (_, at) => Math.sin(at * at));
  const bits = new Uint32Array(floats.buffer);
  const upper = Uint16Array.from(bits, (each) => each >>> 16);
  // Halves from 2^-7 to 2.
  const halves = Uint16Array.from(bits, (each) => (each & 0x8000) | (0x2000 + (each % 0x2000)));
  it.each([
    ["F32", floats, Array.from(floats)],
    ["F16", halves, Array.from(halves, halfToNumber)],
    ["BF16", upper, Array.from(new Float32Array(Uint32Array.from(upper, (each) => each << 16).buffer))],
  ] as const)("%s equal the plain definition", async (name, data, values) => {
    for (const tokens of [1, 7]) {
      const { problem } = problemOf("Q4_0", { tokens, used: 2, rows: 20 });
      const weights = new Uint8Array(data.buffer);
      const found = await multiply({ ...problem, type: TYPE[name], weights });
      const expected = problem.chosen.flatMap((ofToken, token) =>
        ofToken.flatMap((expert) => {
          const matrix = values.slice(expert * 20 * K, (expert + 1) * 20 * K);
          return reference(matrix, problem.activations.subarray(token * K, (token + 1) * K), 20, K);
        }),
      );
      expect(worstError(found!, expected)).toBeLessThan(F32_TOLERANCE);
    }
  });
});
