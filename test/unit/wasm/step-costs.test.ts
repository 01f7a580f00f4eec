import { beforeEach, describe, expect, test } from "vitest";
import { OFFSETS } from "../../../wasm/llama-cpp-build.ts";
import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";
import { again, BYTES_OF_TOKEN, GuessingHost, PLACES, SLOT_STATES } from "../../support/guessing-host.ts";
import { CLOCK_STEP, PROCESS_RESULT } from "../../support/kernel-host-module.ts";

const { idle, reading, generating } = SLOT_STATES;
/** A step of one token, in ms. */
const PLAIN_MS = 10;

let host: GuessingHost;
beforeEach(async () => {
  host = await GuessingHost.start();
  host.view.setFloat32(MEMORY_CELLS.costOfDraft, 50, true);
  begin([generating]);
});

/** Begins a step with slots in these states. */
function begin(states: readonly number[]): void {
  host.serve({ states, task: host.int(PLACES.task) || 1 });
  host.call.update_slots(BigInt(PLACES.server));
}

interface Step {
  readonly guessed?: number;
  readonly tokens?: number;
  readonly context?: number;
  readonly result?: number;
}

/** The model computes a step in so many milliseconds. */
function step(
  ms: number,
  { guessed = 0, tokens = 1 + guessed, context = PLACES.context, result = 0 }: Step = {},
): void {
  host.view.setFloat64(CLOCK_STEP, ms, true);
  host.setInt(PROCESS_RESULT, result);
  host.setInt(MEMORY_CELLS.guessedTokens, guessed);
  const { batch } = PLACES;
  host.setVector(batch + OFFSETS["llama_batch_ext.tokens"].at, PLACES.tokens, tokens * BYTES_OF_TOKEN);
  host.call.process(BigInt(context), 1, BigInt(batch));
}

function steps(count: number, ms: number, options?: Step): void {
  for (let at = 0; at < count; at++) step(ms, options);
}

/** A step with so many guessed tokens, of which each costs so many hundredths of a plain step. */
const guesses = (guessed: number, cost: number): [number, Step] => [
  PLAIN_MS * (1.1 + (cost / 100) * guessed),
  { guessed },
];

const plainMs = (): number => host.view.getFloat32(MEMORY_CELLS.stepCosts, true);
const tokenCost = (): number => host.view.getFloat32(MEMORY_CELLS.stepCosts + 4, true);
const draftCost = (): number => host.view.getFloat32(MEMORY_CELLS.costOfDraft, true);

/** How many tokens are guessed behind a text that repeats itself. */
const guessedAt = (said: number): number => host.guess(again(said)).length;

/** What is guessed, step by step, when all guesses are right and steps take as long as that costs. */
function rightLengths(count: number, cost: number): number[] {
  let said = 4;
  return Array.from({ length: count }, () => {
    begin([generating]);
    const length = guessedAt(said);
    said += length + 1;
    if (length > 0) step(...guesses(length, cost));
    else step(PLAIN_MS);
    return length;
  });
}

describe("the cost of a token that is checked", () => {
  test("are not those of a request that is rehearsed for a GPU, which is not computed", () => {
    host.setInt(MEMORY_CELLS.gpuRehearsal, 1);
    begin([generating]);
    steps(10, 1);
    expect(plainMs()).toBe(0);
    host.setInt(MEMORY_CELLS.gpuRehearsal, 0);
    begin([generating]);
    steps(4, PLAIN_MS);
    expect(plainMs()).toBe(PLAIN_MS);
  });

  test("is that of the steps that have it, beside a step of one token", () => {
    steps(4, PLAIN_MS);
    steps(40, ...guesses(3, 17));
    expect(tokenCost()).toBeCloseTo(17, 0);
    steps(120, ...guesses(15, 80));
    expect(tokenCost()).toBeCloseTo(80, 0);
  });

  test("hardly moves when a step is disturbed, which takes a hundred times as long", () => {
    steps(4, PLAIN_MS);
    steps(40, ...guesses(3, 40));
    step(100 * PLAIN_MS, { guessed: 3 });
    expect(tokenCost()).toBeCloseTo(42.5, 0);
    steps(10, ...guesses(3, 40));
    expect(tokenCost()).toBeCloseTo(40, 0);
  });

  test("is never nothing, though steps of several tokens may take no longer than others", () => {
    steps(4, PLAIN_MS);
    steps(60, PLAIN_MS, { guessed: 7 });
    expect(tokenCost()).toBeCloseTo(1, 0);
  });

  test("has the quickest of the first plain steps to compare with, and follows later ones", () => {
    for (const ms of [500, 30, PLAIN_MS, 12]) step(ms);
    expect(plainMs()).toBe(PLAIN_MS);
    steps(80, 2 * PLAIN_MS);
    expect(plainMs()).toBeCloseTo(2 * PLAIN_MS, 0);
    step(1000 * PLAIN_MS);
    expect(plainMs()).toBeLessThan(2.4 * PLAIN_MS);
  });

  test.each<[string, () => void]>([
    ["has read a part of a prompt", () => step(PLAIN_MS, { guessed: 3, tokens: 64 })],
    ["has failed", () => step(PLAIN_MS, { guessed: 3, result: 1 })],
    ["is the draft model's", () => step(PLAIN_MS, { guessed: 3, context: PLACES.draftContext })],
    [
      "sums up as steps of one token do",
      () => {
        host.view.setUint8(MEMORY_CELLS.sumsOfOneToken, 1);
        step(PLAIN_MS, { guessed: 3 });
      },
    ],
    [
      "several requests share",
      () => {
        begin([generating, generating]);
        step(PLAIN_MS, { guessed: 3 });
      },
    ],
    [
      "comes while another prompt is read",
      () => {
        begin([generating, reading]);
        step(PLAIN_MS, { guessed: 3 });
      },
    ],
  ])("is not learned from a step that %s", (_what, run) => {
    steps(4, PLAIN_MS);
    steps(2, ...guesses(3, 30));
    run();
    expect(tokenCost()).toBe(0);
  });

  test("is not learned from the first steps of a length, for which code is compiled", () => {
    steps(4, PLAIN_MS);
    for (const guessed of [1, 3, 7, 15]) {
      steps(2, 20 * PLAIN_MS, { guessed });
      expect(tokenCost()).toBe(0);
    }
    step(...guesses(15, 52));
    expect(tokenCost()).toBeCloseTo(52, 0);
  });

  test("is learned beside slots that are idle", () => {
    begin([idle, generating, idle]);
    steps(4, PLAIN_MS);
    steps(3, ...guesses(3, 30));
    expect(tokenCost()).toBeGreaterThan(0);
  });
});

describe("guesses", () => {
  test("begin when it is known what a step of one token takes, and leave one out now and then", () => {
    const made = rightLengths(5, 52);
    expect(made).toEqual([0, 0, 0, 0, 1]);
    // The text is said once more for each of these steps.
    host.setInt(PLACES.task, 2);
    host.setInt(MEMORY_CELLS.stepCosts + 12, 64);
    expect(guessedAt(4)).toBe(0);
    step(PLAIN_MS);
    expect(guessedAt(4)).toBe(1);
  });

  test("do not wait for that while others generate as well", () => {
    begin([generating, generating]);
    expect(guessedAt(4)).toBe(1);
  });

  test("become long at once where tokens cost little, and rest where they cost more than they save", () => {
    steps(4, PLAIN_MS);
    steps(40, ...guesses(3, 5));
    host.setInt(MEMORY_CELLS.stepCosts + 12, 0);
    expect(rightLengths(5, 5)).toEqual([1, 3, 7, 15, 31]);
    host.setInt(PLACES.task, 2);
    steps(80, ...guesses(3, 150));
    host.setInt(MEMORY_CELLS.stepCosts + 12, 0);
    const dear = rightLengths(12, 150);
    expect(dear.slice(0, 2)).toEqual([1, 1]);
    expect(dear.slice(4)).toEqual(Array(8).fill(0));
  });
});

/** A draft model guesses so many tokens in a step that takes so long. */
function draft(tokens: number, ms: number): void {
  host.setDraft(99, { sure: tokens });
  guessedAt(0);
  host.view.setFloat64(CLOCK_STEP, ms, true);
  host.draft();
}

describe("the cost of a draft model's step", () => {
  test("is told by files first, and then by what its steps take", () => {
    steps(4, PLAIN_MS);
    draft(1, 0.2 * PLAIN_MS);
    expect(draftCost()).toBeCloseTo(43.75);
    for (let task = 2; task < 40; task++) {
      host.setInt(PLACES.task, task);
      draft(1, 0.2 * PLAIN_MS);
    }
    expect(draftCost()).toBeCloseTo(20, 0);
  });

  test("is not learned before it is known what a step of the model takes", () => {
    begin([generating, generating]);
    draft(1, 0.2 * PLAIN_MS);
    expect(draftCost()).toBe(50);
  });
});
