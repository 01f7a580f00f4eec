import { beforeEach, describe, expect, test } from "vitest";
import { OFFSETS } from "../../../wasm/llama-cpp-build.ts";
import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";
import {
  again,
  count,
  GuessingHost,
  PLACES,
  REMOVAL,
  type Situation,
  SLOT_STATES,
} from "../../support/guessing-host.ts";

const { generating, reading } = SLOT_STATES;
const FOUR = [generating, generating, generating, generating];

let host: GuessingHost;
beforeEach(async () => {
  host = await GuessingHost.start();
});

/** Draft after two accepted drafts, so that it may be longer. */
function guessedOn(text: readonly number[], situation: Situation = {}): number[] {
  host.guessed(text.slice(0, -6), situation);
  host.guessed(text.slice(0, -4), situation);
  return host.guessed(text, situation);
}

/** Lengths of the drafts, step by step, if all are accepted. */
function rightLengths(steps: number): number[] {
  let said = 4;
  return Array.from({ length: steps }, () => {
    const { length } = host.guessed(again(said));
    said += length + 1;
    return length;
  });
}

/** Lengths of the drafts if all are rejected: the text continues differently, and then with another repetition. */
function wrongLengths(steps: number, situation: Situation = {}): number[] {
  return Array.from({ length: steps }, (_, step) => {
    const text = [...count(1, 100), ...Array.from({ length: step }, () => 0), ...count(1, 4)];
    return host.guessed(text, situation).length;
  });
}

describe("look-up drafts", () => {
  test("continue a repetition like its earlier occurrence", () => {
    expect(host.guessed(again(5))).toEqual([6]);
    expect(guessedOn(again(20), { task: 2 })).toEqual(count(21, 7));
  });

  test("continue the longest earlier match, not the latest", () => {
    const text = [9, 1, 2, 3, 4, 50, 8, 1, 2, 3, 4, 60, 9, 1, 2, 3, 4];
    expect(host.guessed(text)[0]).toBe(50);
  });

  test("continue beyond the end of the text if it is periodic", () => {
    expect(guessedOn(Array.from({ length: 12 }, () => 7))).toEqual([7, 7, 7, 7, 7, 7, 7]);
    const ones = Array.from({ length: 12 }, (_, at) => 1 + (at % 2));
    expect(guessedOn(ones, { task: 2 })).toEqual([1, 2, 1, 2, 1, 2, 1]);
  });

  test("need a match of at least four tokens", () => {
    expect(host.guessed([5, 1, 2, 3, 9, 6, 1, 2, 3])).toEqual([]);
    expect(host.guessed([4])).toEqual([]);
  });

  test("are limited by the request and by llama.cpp's batch", () => {
    expect(guessedOn(again(20), { most: 2 })).toEqual([21, 22]);
    expect(guessedOn(again(20), { task: 2, most: 0 })).toEqual([]);
    expect(guessedOn(again(20), { task: 3, freeCells: 3 })).toEqual([21, 22, 23]);
  });

  test("are not made if tokens cannot be removed, as from Mamba's state", () => {
    expect(host.guessed(again(5), { removal: REMOVAL.whole })).toEqual([]);
  });
});

describe("the maximum number of draft tokens", () => {
  test("is the size of the next step, less one token per slot", () => {
    expect(guessedOn(again(20), { batch: 6, states: FOUR })).toEqual([21, 22]);
    expect(guessedOn(again(20), { task: 2, batch: 4, states: FOUR })).toEqual([]);
  });

  test("is the number of free cells of a shared cache, divided among the slots", () => {
    // Four slots with 119 tokens each.
    expect(guessedOn(again(20), { states: FOUR, shared: 4 * (119 + 4) + 3 })).toEqual([21, 22, 23]);
    expect(host.guessed(again(20), { task: 2, states: FOUR, shared: 4 * (119 + 4) })).toEqual([]);
  });

  test("leaves a full step to a prompt that is being evaluated", () => {
    const situation = { states: [...FOUR.slice(1), reading], shared: 4 * 104 + 400 };
    expect(host.guessed(again(5), situation)).toEqual([]);
    expect(host.guessed(again(5), { ...situation, batch: 64 })).toHaveLength(1);
  });
});

describe("drafts", () => {
  test("grow while they are accepted", () => {
    expect(rightLengths(5)).toEqual([1, 3, 7, 15, 31]);
  });

  test("shrink if only their beginning is accepted", () => {
    expect(guessedOn(again(20))).toHaveLength(7);
    // Two of them were accepted, and another token followed.
    const said = [...again(20), 21, 22, 0];
    expect(host.guessed(said)).toEqual([]);
    expect(host.guessed([...said, ...count(1, 4)])).toHaveLength(3);
  });

  test("pause when they are rejected, for growing times", () => {
    const made = wrongLengths(400);
    expect(made.slice(0, 3)).toEqual([1, 1, 0]);
    // Loss of 400 steps, and of the first 64 of them: less than three percent.
    const lost = (steps: number): number =>
      made.slice(0, steps).reduce((sum, length) => sum + (length > 0 ? 0.1 + 0.52 * length : 0), 0);
    expect(lost(400)).toBeLessThan(400 * 0.03);
    expect(lost(64)).toBeLessThan(64 * 0.03);
    expect(made.slice(-100).filter((length) => length > 0).length).toBeLessThan(3);
  });

  test("restart with the next request, carefully if they were rejected", () => {
    wrongLengths(100);
    expect(wrongLengths(64, { task: 2 }).filter((length) => length > 0)).toEqual([1]);
    expect(host.guessed(again(5), { task: 3 })).toHaveLength(1);
  });

  test("are no longer limited after being accepted for some time", () => {
    wrongLengths(100);
    let said = 4;
    for (let step = 0; step < 4; step++) said += host.guessed(again(said), { task: 2 }).length + 1;
    expect(wrongLengths(64, { task: 3 }).slice(0, 3)).toEqual([1, 1, 0]);
  });

  test("make the tokens of a step a multiple of four, if there are more", () => {
    expect(guessedOn(again(20), { most: 6 })).toEqual([21, 22, 23]);
  });

  test("are counted for the step", () => {
    host.setInt(MEMORY_CELLS.guessedTokens, 0);
    host.guessed(again(5));
    expect(host.int(MEMORY_CELLS.guessedTokens)).toBe(1);
  });
});

/** Kinds of drafts that are enabled in llama.cpp for a maximum number of draft tokens. */
function kindsFor(most: number): number[] {
  const { params, tokens } = PLACES;
  host.setVector(params, tokens, 4);
  host.setInt(tokens, 0);
  host.setInt(params + OFFSETS["common_params_speculative.draft.n_max"].at, most);
  host.call.speculation(BigInt(params), 4);
  return host.vector(params);
}

describe("llama.cpp's speculative decoding", () => {
  test("is enabled for look-up and for a draft model, unless the load settings disable it", () => {
    expect(kindsFor(64)).toEqual([6]);
    expect(kindsFor(65)).toEqual([6, 1]);
    expect(kindsFor(0)).toEqual([0]);
  });
});
