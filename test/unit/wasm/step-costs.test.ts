import { beforeEach, describe, expect, test } from "vitest";
import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";
import {
  CLOCK_STEP,
  DRAFT_TOKENS,
  FREE_MEMORY,
  hostMemory,
  linkHost,
  PROCESS_RESULT,
  STACK_TOP,
  TOKENS_READ,
} from "../../support/kernel-host-module.ts";

const PAGES = 64;
/** Structures of llama.cpp's, far enough from each other. */
const place = (number: number): number => STACK_TOP + 65_536 * number;
const [SERVER, CONTEXT, SLOTS, TASK] = [place(0), place(1), place(2), place(3)] as const;
const [WISHES, WISH, TEXT, GUESS, TOKENS] = [place(4), place(5), place(6), place(7), place(8)] as const;
const [BATCH, DRAFT, DRAFT_CONTEXT] = [place(9), place(10), place(11)] as const;
const BYTES_OF_SLOT = 3296;
const BYTES_OF_WISH = 32;
const BYTES_OF_TOKEN = 80;
const AT = {
  context: 6632,
  removal: 6792,
  slots: 6824,
  slotTask: 2744,
  slotState: 2928,
  slotTokens: 2968,
  mostGuessed: 72,
  batchTokens: 64,
} as const;
const KV_CACHE = 526384n;
const IDLE = 0;
const READING = 3;
const GENERATING = 5;
/** A step of one token, in ms. */
const PLAIN_MS = 10;

type Call = (...args: (bigint | number)[]) => number;

let view: DataView;
let call: Record<"process" | "update_slots" | "guess" | "draft", Call>;

const setPointer = (at: number, to: number): void => view.setBigUint64(at, BigInt(to), true);
const setInt = (at: number, to: number): void => view.setInt32(at, to, true);

beforeEach(async () => {
  const memory = hostMemory(PAGES);
  const { instance } = await WebAssembly.instantiate(linkHost(PAGES, false), { env: { memory } });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  call = instance.exports as typeof call;
  view = new DataView(memory.buffer);
  setPointer(FREE_MEMORY, PAGES * 65_536);
  setPointer(MEMORY_CELLS.server, SERVER);
  setPointer(SERVER + AT.context, CONTEXT);
  setInt(SERVER + AT.removal, 1);
  setInt(CONTEXT + 8, 4096);
  setInt(CONTEXT + 12, 4096);
  setInt(CONTEXT + 16, 512);
  setInt(TASK, 1);
  view.setUint8(TASK + AT.mostGuessed, 64);
  view.setFloat32(MEMORY_CELLS.costOfDraft, 50, true);
  begin([GENERATING]);
});

/** Begins a step with slots in these states. */
function begin(states: readonly number[]): void {
  setPointer(SERVER + AT.slots, SLOTS);
  setPointer(SERVER + AT.slots + 8, SLOTS + states.length * BYTES_OF_SLOT);
  for (const [slot, state] of states.entries()) {
    setPointer(SLOTS + slot * BYTES_OF_SLOT + AT.slotTask, TASK);
    setInt(SLOTS + slot * BYTES_OF_SLOT + AT.slotState, state);
  }
  call.update_slots(BigInt(SERVER));
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
  { guessed = 0, tokens = 1 + guessed, context = CONTEXT, result = 0 }: Step = {},
): void {
  view.setFloat64(CLOCK_STEP, ms, true);
  setInt(PROCESS_RESULT, result);
  setInt(MEMORY_CELLS.guessedTokens, guessed);
  setPointer(BATCH + AT.batchTokens, TOKENS);
  setPointer(BATCH + AT.batchTokens + 8, TOKENS + tokens * BYTES_OF_TOKEN);
  call.process(BigInt(context), 1, BigInt(BATCH));
}

function steps(count: number, ms: number, options?: Step): void {
  for (let at = 0; at < count; at++) step(ms, options);
}

/** A step with so many guessed tokens, of which each costs so many hundredths of a plain step. */
const guesses = (guessed: number, cost: number): [number, Step] => [
  PLAIN_MS * (1.1 + (cost / 100) * guessed),
  { guessed },
];

const plainMs = (): number => view.getFloat32(MEMORY_CELLS.stepCosts, true);
const tokenCost = (): number => view.getFloat32(MEMORY_CELLS.stepCosts + 4, true);
const draftCost = (): number => view.getFloat32(MEMORY_CELLS.costOfDraft, true);

/** Tokens that are guessed behind a text that says 1 to 100 twice, the second time up to `said`. */
function guessedAt(said: number): number {
  const text = [...Array(100).keys(), ...Array(said).keys()].map((token) => token + 1);
  setPointer(WISHES, WISH);
  setPointer(WISHES + 8, WISH + BYTES_OF_WISH);
  setPointer(TEXT, TOKENS);
  setPointer(TEXT + 8, TOKENS + 4 * (text.length - 1));
  for (const [at, token] of text.entries()) setInt(TOKENS + 4 * at, token);
  view.setUint8(WISH, 1);
  setInt(WISH + 4, 1000);
  setInt(WISH + 8, text.length - 1);
  setInt(WISH + 12, text.at(-1) ?? 0);
  setPointer(WISH + 16, TEXT);
  setPointer(WISH + 24, GUESS);
  view.setBigUint64(GUESS + 8, view.getBigUint64(GUESS, true), true);
  call.guess(0n, BigInt(WISHES));
  return Number(view.getBigUint64(GUESS + 8, true) - view.getBigUint64(GUESS, true)) / 4;
}

/** What is guessed, step by step, when all guesses are right and steps take as long as that costs. */
function rightLengths(count: number, cost: number): number[] {
  let said = 4;
  return Array.from({ length: count }, () => {
    begin([GENERATING]);
    const length = guessedAt(said);
    said += length + 1;
    if (length > 0) step(...guesses(length, cost));
    else step(PLAIN_MS);
    return length;
  });
}

describe("the cost of a token that is checked", () => {
  test("are not those of a request that is rehearsed for a GPU, which is not computed", () => {
    setInt(MEMORY_CELLS.gpuRehearsal, 1);
    begin([GENERATING]);
    steps(10, 1);
    expect(plainMs()).toBe(0);
    setInt(MEMORY_CELLS.gpuRehearsal, 0);
    begin([GENERATING]);
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
    ["is the draft model's", () => step(PLAIN_MS, { guessed: 3, context: DRAFT_CONTEXT })],
    [
      "sums up as steps of one token do",
      () => {
        view.setUint8(MEMORY_CELLS.sumsOfOneToken, 1);
        step(PLAIN_MS, { guessed: 3 });
      },
    ],
    [
      "several requests share",
      () => {
        begin([GENERATING, GENERATING]);
        step(PLAIN_MS, { guessed: 3 });
      },
    ],
    [
      "comes while another prompt is read",
      () => {
        begin([GENERATING, READING]);
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
    begin([IDLE, GENERATING, IDLE]);
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
    setInt(TASK, 2);
    setInt(MEMORY_CELLS.stepCosts + 12, 64);
    expect(guessedAt(4)).toBe(0);
    step(PLAIN_MS);
    expect(guessedAt(4)).toBe(1);
  });

  test("do not wait for that while others generate as well", () => {
    begin([GENERATING, GENERATING]);
    setPointer(WISHES + 8, WISH + BYTES_OF_WISH);
    expect(guessedAt(4)).toBe(1);
  });

  test("become long at once where tokens cost little, and rest where they cost more than they save", () => {
    steps(4, PLAIN_MS);
    steps(40, ...guesses(3, 5));
    setInt(MEMORY_CELLS.stepCosts + 12, 0);
    expect(rightLengths(5, 5)).toEqual([1, 3, 7, 15, 31]);
    setInt(TASK, 2);
    steps(80, ...guesses(3, 150));
    setInt(MEMORY_CELLS.stepCosts + 12, 0);
    const dear = rightLengths(12, 150);
    expect(dear.slice(0, 2)).toEqual([1, 1]);
    expect(dear.slice(4)).toEqual(Array(8).fill(0));
  });
});

/** A draft model guesses so many tokens in a step that takes so long. */
function draft(tokens: number, ms: number): void {
  setPointer(DRAFT + 288, DRAFT_CONTEXT);
  setInt(DRAFT_CONTEXT + 16, 64);
  setPointer(DRAFT_CONTEXT + 256, DRAFT_CONTEXT + 1024);
  view.setBigUint64(DRAFT_CONTEXT + 1024, KV_CACHE, true);
  setInt(TOKENS_READ, 99);
  setInt(DRAFT_TOKENS, tokens);
  guessedAt(0);
  view.setFloat64(CLOCK_STEP, ms, true);
  view.setUint8(WISH, 1);
  call.draft(BigInt(DRAFT), BigInt(WISHES));
}

describe("the cost of a draft model's step", () => {
  test("is told by files first, and then by what its steps take", () => {
    steps(4, PLAIN_MS);
    draft(1, 0.2 * PLAIN_MS);
    expect(draftCost()).toBeCloseTo(43.75);
    for (let task = 2; task < 40; task++) {
      setInt(TASK, task);
      draft(1, 0.2 * PLAIN_MS);
    }
    expect(draftCost()).toBeCloseTo(20, 0);
  });

  test("is not learned before it is known what a step of the model takes", () => {
    begin([GENERATING, GENERATING]);
    draft(1, 0.2 * PLAIN_MS);
    expect(draftCost()).toBe(50);
  });
});
