import { beforeEach, describe, expect, test } from "vitest";
import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";
import {
  BYTES_OF_TOKEN,
  count,
  GuessingHost,
  MEMORY_CLASSES,
  PLACES,
  type Situation,
  SLOT_STATES,
} from "../../support/guessing-host.ts";
import { TOKENS_READ } from "../../support/kernel-host-module.ts";

const { generating, reading } = SLOT_STATES;
/** In hundredths of a step of the model. */
const COST_OF_DRAFT = 17;

let host: GuessingHost;
beforeEach(async () => {
  host = await GuessingHost.start();
  host.view.setFloat32(MEMORY_CELLS.costOfDraft, COST_OF_DRAFT, true);
});

/** Asks it for a guess behind a text in which nothing repeats; returns how many tokens it may guess. */
function asked(length: number, situation: Situation = {}): number {
  expect(host.guessed(count(1, length), situation)).toEqual([]);
  host.draft();
  return host.wasOriginalCalled ? host.int(PLACES.wish + 4) : 0;
}

interface Draft {
  /** Tokens that it guesses at most. */
  readonly sure: number;
  readonly right: boolean;
}

/** What a draft model guesses, step by step, for an answer of so many tokens. */
function drafted(task: number, tokens: number, { sure, right }: Draft): number[] {
  const made: number[] = [];
  for (let length = 100, kept = 0; length < 100 + tokens; length += 1 + kept) {
    // Of a guess that is right it has not read the last token.
    host.setDraft(kept > 0 ? length - 2 : length - 1, { sure });
    const before = host.int(MEMORY_CELLS.guessedTokens);
    asked(length, { task });
    made.push(host.int(MEMORY_CELLS.guessedTokens) - before);
    kept = right ? made.at(-1)! : 0;
  }
  return made;
}

const steps = (made: readonly number[]): number => made.filter((length) => length > 0).length;

/** Steps of one token that a guess of a draft model costs. */
const costOf = (length: number): number => (length > 0 ? 0.1 + (0.52 + COST_OF_DRAFT / 100) * length : 0);
const total = (figures: readonly number[]): number => figures.reduce((all, each) => all + each, 0);

describe("guesses of a draft model", () => {
  test("become longer as what they saved pays for a wrong one, and go on in the next request", () => {
    const right = { sure: 15, right: true };
    expect(drafted(1, 64, right)).toEqual([1, 3, 3, 7, 7, 11, 15, 15]);
    expect(drafted(2, 64, right)).toEqual([15, 15, 15, 15]);
    expect(drafted(3, 32, { ...right, right: false }).slice(0, 3)).toEqual([15, 0, 0]);
  });

  test.each([1, 3, 7, 15])("lose little, however long the first ones were right, up to %i tokens", (sure) => {
    const saved = total(drafted(1, 20, { sure, right: true }).map((length) => length - costOf(length)));
    const wrong = drafted(2, 200, { sure, right: false });
    expect(wrong.at(-1)).toBe(0);
    expect(total(wrong.map(costOf)) - saved).toBeLessThan(3.5);
  });

  test("rest when they are wrong, also in the next requests", () => {
    const wrong = { sure: 64, right: false };
    const first = drafted(1, 64, wrong);
    expect(first.slice(0, 3)).toEqual([1, 1, 0]);
    expect(steps(first)).toBe(2);
    // One more each time that a rest is over, ever less often: of 64 requests with 64 tokens.
    const made = Array.from({ length: 64 }, (_, at) => steps(drafted(2 + at, 64, wrong)));
    expect(made.slice(0, 3)).toEqual([0, 0, 0]);
    expect(made.reduce((sum, each) => sum + each)).toBeLessThan(6);
    expect(Math.max(...made)).toBe(1);
  });

  test("rest as well when the draft model is never sure, which takes its time, too", () => {
    host.setDraft(99);
    expect(asked(100)).toBe(1);
    drafted(1, 16, { sure: 0, right: true });
    host.setDraft(116);
    expect(asked(117)).toBe(0);
  });

  test("are tried again after a rest, and go on when they are right", () => {
    drafted(1, 64, { sure: 15, right: false });
    const made = Array.from({ length: 8 }, (_, at) => drafted(2 + at, 64, { sure: 15, right: true }));
    expect(
      made
        .slice(0, 3)
        .flat()
        .every((length) => length === 0),
    ).toBe(true);
    expect(made.at(-1)).toEqual([15, 15, 15, 15]);
  });

  test("are not worth reading much that was missed in the middle of an answer", () => {
    host.setDraft(99, { sure: 1 });
    expect(asked(100)).toBe(1);
    host.setDraft(100, { sure: 1 });
    expect(asked(130)).toBe(0);
    host.setDraft(126, { sure: 1 });
    expect(asked(131)).toBe(1);
  });
});

describe("a draft model", () => {
  test("reads what it lacks before it guesses, and forgets what was wrong", () => {
    host.setDraft(20);
    expect(asked(100)).toBe(1);
    expect(host.int(TOKENS_READ)).toBe(99);
    host.setDraft(105);
    expect(asked(100, { task: 2 })).toBe(1);
    expect(host.int(TOKENS_READ)).toBe(99);
  });

  test("is not asked when it lacks so much that others would wait, or cannot forget", () => {
    host.setDraft(0);
    expect(asked(600)).toBe(0);
    host.setDraft(99, { memoryClass: MEMORY_CLASSES.mamba });
    expect(asked(100, { task: 2 })).toBe(0);
  });

  test("is not asked where the request allows no guess", () => {
    host.setDraft(99);
    expect(asked(100, { most: 0 })).toBe(0);
  });

  test.each([
    [
      "reads a prompt along with the model",
      { state: reading, first: 10, read: 10, reads: true, rests: false },
    ],
    ["reads no prompt while it rests", { state: reading, first: 10, read: 10, reads: false, rests: true }],
    [
      "does not read what the model generates, unless it is asked",
      { state: generating, first: 10, read: 10, reads: false, rests: false },
    ],
    [
      "does not read on where it has not read what comes before",
      { state: reading, first: 10, read: 4, reads: false, rests: false },
    ],
  ])("%s", (_what, { state, first, read, reads, rests }) => {
    if (rests) drafted(1, 16, { sure: 1, right: false });
    host.guessed(count(1, 20));
    host.setInt(host.slotField(0, "state"), state);
    host.setDraft(read);
    const { batch, tokens } = PLACES;
    host.setVector(batch, tokens, 3 * BYTES_OF_TOKEN);
    for (let at = 0; at < 3; at++) {
      host.setInt(tokens + at * BYTES_OF_TOKEN, 7);
      host.setInt(tokens + at * BYTES_OF_TOKEN + 4, first + at);
      host.setInt(tokens + at * BYTES_OF_TOKEN + 20, 0);
    }
    expect(host.call.draft_process(BigInt(PLACES.draft), BigInt(batch))).toBe(1);
    expect(host.wasOriginalCalled).toBe(reads);
  });
});
