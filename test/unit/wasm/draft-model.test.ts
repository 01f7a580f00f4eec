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
/** Cost in hundredths of a step of the model. */
const COST_OF_DRAFT = 17;

let host: GuessingHost;
beforeEach(async () => {
  host = await GuessingHost.start();
  host.view.setFloat32(MEMORY_CELLS.costOfDraft, COST_OF_DRAFT, true);
});

/** Requests a draft for a text without repetitions; returns the allowed number of tokens. */
function asked(length: number, situation: Situation = {}): number {
  expect(host.guessed(count(1, length), situation)).toEqual([]);
  host.draft();
  return host.wasOriginalCalled ? host.int(PLACES.request + 4) : 0;
}

interface Draft {
  /** Maximum number of its draft tokens. */
  readonly sure: number;
  readonly right: boolean;
}

/** Lengths of the drafts of a draft model, step by step, for an answer of so many tokens. */
function drafted(task: number, tokens: number, { sure, right }: Draft): number[] {
  const made: number[] = [];
  for (let length = 100, kept = 0; length < 100 + tokens; length += 1 + kept) {
    // Of an accepted draft, it has not evaluated the last token.
    host.setDraft(kept > 0 ? length - 2 : length - 1, { sure });
    const before = host.int(MEMORY_CELLS.guessedTokens);
    asked(length, { task });
    made.push(host.int(MEMORY_CELLS.guessedTokens) - before);
    kept = right ? made.at(-1)! : 0;
  }
  return made;
}

const steps = (made: readonly number[]): number => made.filter((length) => length > 0).length;

/** Cost of a draft in steps of one token. */
const costOf = (length: number): number => (length > 0 ? 0.1 + (0.52 + COST_OF_DRAFT / 100) * length : 0);
const total = (figures: readonly number[]): number => figures.reduce((all, each) => all + each, 0);

describe("drafts of a draft model", () => {
  test("grow while their savings cover a rejected draft, also in the next request", () => {
    const right = { sure: 15, right: true };
    expect(drafted(1, 64, right)).toEqual([1, 3, 3, 7, 7, 11, 15, 15]);
    expect(drafted(2, 64, right)).toEqual([15, 15, 15, 15]);
    expect(drafted(3, 32, { ...right, right: false }).slice(0, 3)).toEqual([15, 0, 0]);
  });

  test.each([1, 3, 7, 15])("lose little after any number of accepted drafts, up to %i tokens", (sure) => {
    const saved = total(drafted(1, 20, { sure, right: true }).map((length) => length - costOf(length)));
    const wrong = drafted(2, 200, { sure, right: false });
    expect(wrong.at(-1)).toBe(0);
    expect(total(wrong.map(costOf)) - saved).toBeLessThan(3.5);
  });

  test("pause when they are rejected, also in the next requests", () => {
    const wrong = { sure: 64, right: false };
    const first = drafted(1, 64, wrong);
    expect(first.slice(0, 3)).toEqual([1, 1, 0]);
    expect(steps(first)).toBe(2);
    // One more after each pause, at growing intervals: of 64 requests with 64 tokens.
    const made = Array.from({ length: 64 }, (_, at) => steps(drafted(2 + at, 64, wrong)));
    expect(made.slice(0, 3)).toEqual([0, 0, 0]);
    expect(made.reduce((sum, each) => sum + each)).toBeLessThan(6);
    expect(Math.max(...made)).toBe(1);
  });

  test("pause if the draft model is never sure, because its steps cost time, too", () => {
    host.setDraft(99);
    expect(asked(100)).toBe(1);
    drafted(1, 16, { sure: 0, right: true });
    host.setDraft(116);
    expect(asked(117)).toBe(0);
  });

  test("are tried again after a pause, and continue if they are accepted", () => {
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

  test("do not resume within an answer if many tokens would have to be evaluated first", () => {
    host.setDraft(99, { sure: 1 });
    expect(asked(100)).toBe(1);
    host.setDraft(100, { sure: 1 });
    expect(asked(130)).toBe(0);
    host.setDraft(126, { sure: 1 });
    expect(asked(131)).toBe(1);
  });
});

describe("a draft model", () => {
  test("evaluates missing tokens before it drafts, and removes rejected ones", () => {
    host.setDraft(20);
    expect(asked(100)).toBe(1);
    expect(host.int(TOKENS_READ)).toBe(99);
    host.setDraft(105);
    expect(asked(100, { task: 2 })).toBe(1);
    expect(host.int(TOKENS_READ)).toBe(99);
  });

  test("is not used if it lacks too many tokens, or cannot remove tokens", () => {
    host.setDraft(0);
    expect(asked(600)).toBe(0);
    host.setDraft(99, { memoryClass: MEMORY_CLASSES.mamba });
    expect(asked(100, { task: 2 })).toBe(0);
  });

  test("is not used if the request disables drafts", () => {
    host.setDraft(99);
    expect(asked(100, { most: 0 })).toBe(0);
  });

  test.each([
    [
      "reads a prompt along with the model",
      { state: reading, first: 10, read: 10, reads: true, rests: false },
    ],
    [
      "does not evaluate a prompt while it is paused",
      { state: reading, first: 10, read: 10, reads: false, rests: true },
    ],
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
