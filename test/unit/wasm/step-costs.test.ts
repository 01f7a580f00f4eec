import { beforeEach, describe, expect, test } from "vitest";
import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";
import { again, GuessingHost, PLACES, SLOT_STATES, type Step } from "../../support/guessing-host.ts";

const { idle, reading, generating } = SLOT_STATES;
/** Time of a step of one token, in ms. */
const PLAIN_MS = 10;

let host: GuessingHost;
beforeEach(async () => {
  host = await GuessingHost.start();
  host.view.setFloat32(MEMORY_CELLS.costOfDraft, 50, true);
  host.begin([generating]);
});

/** Step with draft tokens, each of which costs this many hundredths of a plain step. */
const guesses = (guessed: number, cost: number): [number, Step] => [
  PLAIN_MS * (1.1 + (cost / 100) * guessed),
  { guessed },
];

const plainMs = (): number => host.view.getFloat32(MEMORY_CELLS.stepCosts, true);

/** Number of draft tokens after a repetitive text. */
const guessedAt = (said: number): number => host.guess(again(said)).length;

/** Lengths of the drafts, step by step, if all are accepted and steps take the corresponding time. */
function rightLengths(count: number, cost: number): number[] {
  let said = 4;
  return Array.from({ length: count }, () => {
    host.begin([generating]);
    const length = guessedAt(said);
    said += length + 1;
    if (length > 0) host.step(...guesses(length, cost));
    else host.step(PLAIN_MS);
    return length;
  });
}

describe("the cost of a draft token", () => {
  test("is not measured in a warm-up request for a GPU, which is not computed", () => {
    host.setInt(MEMORY_CELLS.gpuRehearsal, 1);
    host.begin([generating]);
    host.steps(10, 1);
    expect(plainMs()).toBe(0);
    host.setInt(MEMORY_CELLS.gpuRehearsal, 0);
    host.begin([generating]);
    host.steps(4, PLAIN_MS);
    expect(plainMs()).toBe(PLAIN_MS);
  });

  test("is the additional time of steps with drafts", () => {
    host.steps(4, PLAIN_MS);
    host.steps(40, ...guesses(3, 17));
    expect(host.tokenCost()).toBeCloseTo(17, 0);
    host.steps(120, ...guesses(15, 80));
    expect(host.tokenCost()).toBeCloseTo(80, 0);
  });

  test("hardly changes after a disturbed step that takes a hundred times as long", () => {
    host.steps(4, PLAIN_MS);
    host.steps(40, ...guesses(3, 40));
    host.step(100 * PLAIN_MS, { guessed: 3 });
    expect(host.tokenCost()).toBeCloseTo(42.5, 0);
    host.steps(10, ...guesses(3, 40));
    expect(host.tokenCost()).toBeCloseTo(40, 0);
  });

  test("is never zero, even if steps of several tokens take no longer", () => {
    host.steps(4, PLAIN_MS);
    host.steps(60, PLAIN_MS, { guessed: 7 });
    expect(host.tokenCost()).toBeCloseTo(1, 0);
  });

  test("is relative to the fastest of the first plain steps, and follows later ones", () => {
    for (const ms of [500, 30, PLAIN_MS, 12]) host.step(ms);
    expect(plainMs()).toBe(PLAIN_MS);
    host.steps(80, 2 * PLAIN_MS);
    expect(plainMs()).toBeCloseTo(2 * PLAIN_MS, 0);
    host.step(1000 * PLAIN_MS);
    expect(plainMs()).toBeLessThan(2.4 * PLAIN_MS);
  });

  test.each<[string, () => void]>([
    ["evaluates a part of a prompt", () => host.step(PLAIN_MS, { guessed: 3, tokens: 64 })],
    ["failed", () => host.step(PLAIN_MS, { guessed: 3, result: 1 })],
    ["is the draft model's", () => host.step(PLAIN_MS, { guessed: 3, context: PLACES.draftContext })],
    [
      "sums up as steps of one token do",
      () => {
        host.view.setUint8(MEMORY_CELLS.sumsOfOneToken, 1);
        host.step(PLAIN_MS, { guessed: 3 });
      },
    ],
    [
      "several requests share",
      () => {
        host.begin([generating, generating]);
        host.step(PLAIN_MS, { guessed: 3, tokens: 5 });
      },
    ],
    [
      "comes while another prompt is read",
      () => {
        host.begin([generating, reading]);
        host.step(PLAIN_MS, { guessed: 3 });
      },
    ],
  ])("is not measured in a step that %s", (_what, run) => {
    host.steps(4, PLAIN_MS);
    host.steps(2, ...guesses(3, 30));
    run();
    expect(host.tokenCost()).toBe(0);
  });

  test("is not measured in the first steps of a length, which include compilation", () => {
    host.steps(4, PLAIN_MS);
    for (const guessed of [1, 3, 7, 15]) {
      host.steps(2, 20 * PLAIN_MS, { guessed });
      expect(host.tokenCost()).toBe(0);
    }
    host.step(...guesses(15, 52));
    expect(host.tokenCost()).toBeCloseTo(52, 0);
  });

  test("is measured while other slots are idle", () => {
    host.begin([idle, generating, idle]);
    host.steps(4, PLAIN_MS);
    host.steps(3, ...guesses(3, 30));
    expect(host.tokenCost()).toBeGreaterThan(0);
  });
});

describe("drafts", () => {
  test("begin when the time of a plain step is known, and skip a step from time to time", () => {
    const made = rightLengths(5, 52);
    expect(made).toEqual([0, 0, 0, 0, 1]);
    // Each of these steps repeats the text.
    host.setInt(PLACES.task, 2);
    host.guessSteps = 64;
    expect(guessedAt(4)).toBe(0);
    host.step(PLAIN_MS);
    expect(guessedAt(4)).toBe(1);
  });

  test("do not wait for a plain step while a prompt is evaluated", () => {
    host.begin([generating, reading]);
    expect(guessedAt(4)).toBe(1);
  });

  test("grow quickly if tokens cost little, and pause if they cost more than they save", () => {
    host.steps(4, PLAIN_MS);
    host.steps(40, ...guesses(3, 5));
    host.guessSteps = 0;
    expect(rightLengths(5, 5)).toEqual([1, 3, 7, 15, 31]);
    host.setInt(PLACES.task, 2);
    host.steps(80, ...guesses(3, 150));
    host.guessSteps = 0;
    const dear = rightLengths(12, 150);
    expect(dear.slice(0, 2)).toEqual([1, 1]);
    expect(dear.slice(4)).toEqual(Array(8).fill(0));
  });
});

/** Records steps of a draft model that make so many tokens in this time. */
function draft(tokens: number, ms: number): void {
  host.setDraft(99, { sure: tokens });
  guessedAt(0);
  host.draft(ms);
}

describe("the cost of a draft model's step", () => {
  test("is first estimated from file sizes, and then measured", () => {
    host.steps(4, PLAIN_MS);
    draft(1, 0.2 * PLAIN_MS);
    expect(host.draftCost).toBeCloseTo(43.75);
    for (let task = 2; task < 40; task++) {
      host.setInt(PLACES.task, task);
      draft(1, 0.2 * PLAIN_MS);
    }
    expect(host.draftCost).toBeCloseTo(20, 0);
  });

  test("is not measured before the time of a plain step of the model is known", () => {
    host.begin([generating, generating]);
    host.steps(4, PLAIN_MS, { tokens: 2 });
    draft(1, 0.2 * PLAIN_MS);
    expect(host.draftCost).toBe(50);
  });
});
