import { describe, expect, it } from "vitest";
import { maskModules } from "../../support/mask-modules.ts";
import { type Cell, maskOf, type MaskProblem, type Token } from "../../support/mask-problem.ts";
import { randoms } from "../../support/randoms.ts";

const { stock, image } = await maskModules();

const MAX_CELLS = 90;
const LATEST = 60;
const SEQUENCES = [0, 1, 9, 255];
const WINDOWS = { none: 0, standard: 1, chunked: 2, symmetric: 3 } as const;

/** Random step: cells in any order, empty ones, of several sequences, in one stream or several. */
function randomProblem(seed: number, fixed: Partial<MaskProblem>): MaskProblem {
  const random = randoms(seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  const some = <Item>(items: readonly Item[]): Item => items[below(items.length)]!;
  const columns = 1 + below(MAX_CELLS);
  const streamCount = some([1, 1, 3]);
  const streamOf = Array.from({ length: 256 }, (_, sequence) => sequence % streamCount);
  const cell = (): Cell => {
    const isEmpty = random() < 0.2;
    const sequences = isEmpty ? [] : SEQUENCES.filter(() => random() < 0.6);
    return { position: isEmpty ? -1 : below(LATEST), x: below(3), y: below(3), sequences };
  };
  const stepStreams = streamCount === 1 ? 1 : some([1, 2]);
  const count = stepStreams * (1 + below(12));
  let sequence = some(SEQUENCES);
  const tokens = Array.from({ length: count }, (): Token => {
    if (random() < 0.3) sequence = some(SEQUENCES);
    return { position: below(LATEST), x: below(3), y: below(3), sequence };
  });
  return {
    type: some(["f16", "f32"]),
    isCausal: random() < 0.7,
    nonCausalType: below(2),
    window: some(Object.values(WINDOWS)),
    windowTokens: 1 + below(LATEST),
    hasAlibi: random() < 0.3,
    positionNumbers: some([1, 1, 3, 4]),
    streams: Array.from({ length: streamCount }, () => Array.from({ length: columns }, cell)),
    streamOf,
    stepStreams,
    tokens,
    ...fixed,
  };
}

/** Seeds whose masks differ from llama.cpp's. */
function differing(seeds: number, fixed: Partial<MaskProblem>): number[] {
  return Array.from({ length: seeds }, (_, seed) => seed).filter((seed) => {
    const problem = randomProblem(seed, fixed);
    return !Buffer.from(maskOf(image, problem)).equals(maskOf(stock, problem));
  });
}

describe("the attention mask", () => {
  it("has the same bytes as llama.cpp's for random steps", () => {
    expect(differing(300, {})).toEqual([]);
  });

  it.each(Object.entries(WINDOWS))("has the same bytes with a sliding window of kind %s", (_, window) => {
    const fixed: Partial<MaskProblem> = { window, type: "f16", hasAlibi: false, isCausal: true };
    expect(differing(60, fixed)).toEqual([]);
    // Both visible and hidden cells occur.
    const halves = new Set(new Uint16Array(maskOf(image, randomProblem(3, fixed)).buffer));
    expect(halves).toEqual(new Set([0, 0xfc00]));
  });

  it("rounds distances that a half cannot represent like llama.cpp", () => {
    const far = [0, 1, 2047, 2049, 2051, 4098, 65_503, 65_519, 65_520, 70_000].map((position) => ({
      position,
      x: 0,
      y: 0,
      sequences: [0],
    }));
    const tokens = [{ position: 70_001, x: 0, y: 0, sequence: 0 }];
    const distances = { hasAlibi: true, window: WINDOWS.none, isCausal: true };
    const fixed = { ...distances, streams: [far], streamOf: [0], stepStreams: 1, tokens };
    expect(differing(4, { ...fixed, type: "f16" })).toEqual([]);
    expect(differing(4, { ...fixed, type: "f32" })).toEqual([]);
  });

  it("is left to llama.cpp for an unknown kind of window", () => {
    expect(differing(20, { window: 4 })).toEqual([]);
  });
});
