import { beforeEach, describe, expect, test } from "vitest";
import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";
import {
  CHOICE,
  DRAFT_TOKENS,
  FALLBACK_MARK,
  FREE_MEMORY,
  hostMemory,
  linkHost,
  STACK_TOP,
  TOKENS_READ,
} from "../../support/kernel-host-module.ts";

const PAGES = 64;
const MEMORY_END = PAGES * 65_536;
/** Structures of llama.cpp's, far enough from each other. */
const place = (number: number): number => STACK_TOP + 65_536 * number;
const [SERVER, CONTEXT, SLOTS, TASK] = [place(0), place(1), place(2), place(3)] as const;
const [WISHES, WISH, TEXT, GUESS, TOKENS] = [place(4), place(5), place(6), place(7), place(8)] as const;
const PARAMS = place(9);
const [DRAFT, DRAFT_CONTEXT, BATCH] = [place(10), place(11), place(12)] as const;
const [GIVEN, SAMPLER] = [place(13), place(14)] as const;
const BYTES_OF_SLOT = 3296;
const BYTES_OF_WISH = 32;
const AT = {
  context: 6632,
  removal: 6792,
  slots: 6824,
  slotTask: 2744,
  slotState: 2928,
  slotTokens: 2968,
  mostGuessed: 72,
  number: 74,
  slotDraft: 16,
  slotSampler: 3080,
} as const;
const GENERATING = 5;
const READING = 3;
const CAN_TAKE_BACK = 1;

type Kernels = Record<
  "guess" | "speculation" | "draft" | "draft_process" | "sample",
  (a: bigint, b: bigint | number, c?: number, d?: number) => bigint | number
>;

let view: DataView;
let call: Kernels;

beforeEach(async () => {
  const memory = hostMemory(PAGES);
  const { instance } = await WebAssembly.instantiate(linkHost(PAGES, false), { env: { memory } });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  call = instance.exports as Kernels;
  view = new DataView(memory.buffer);
  setPointer(FREE_MEMORY, MEMORY_END);
});

const setPointer = (at: number, to: number): void => view.setBigUint64(at, BigInt(to), true);
const setInt = (at: number, to: number): void => view.setInt32(at, to, true);

interface Situation {
  readonly task?: number;
  /** What the request allows. */
  readonly most?: number;
  /** What llama.cpp has room for. */
  readonly room?: number;
  readonly batch?: number;
  readonly removal?: number;
  /** Tokens of a cache that slots share; absent: each has its own. */
  readonly shared?: number;
  readonly slots?: number;
  /** The last slot reads a prompt. */
  readonly isReading?: boolean;
}

/** What is guessed behind a text, whose last token the model has just generated. */
function guessed(text: readonly number[], situation: Situation = {}): number[] {
  const { task = 1, most = 64, room = 1000, batch = 512, removal = CAN_TAKE_BACK, slots = 1 } = situation;
  setPointer(MEMORY_CELLS.server, SERVER);
  setPointer(SERVER + AT.context, CONTEXT);
  setInt(CONTEXT + 8, situation.shared ?? slots * 4096);
  setInt(CONTEXT + 12, situation.shared ?? 4096);
  setInt(CONTEXT + 16, batch);
  setInt(SERVER + AT.removal, removal);
  setPointer(SERVER + AT.slots, SLOTS);
  setPointer(SERVER + AT.slots + 8, SLOTS + slots * BYTES_OF_SLOT);
  setInt(TASK, task);
  view.setUint8(TASK + AT.mostGuessed, most);
  for (let slot = 0; slot < slots; slot++) {
    const at = SLOTS + slot * BYTES_OF_SLOT;
    setPointer(at + AT.slotTask, TASK);
    setInt(at + AT.slotState, situation.isReading && slot === slots - 1 ? READING : GENERATING);
    setPointer(at + AT.slotTokens, 0);
    setPointer(at + AT.slotTokens + 8, 4 * (text.length - 1));
  }
  setPointer(WISHES, WISH);
  setPointer(WISHES + 8, WISH + slots * BYTES_OF_WISH);
  setPointer(TEXT, TOKENS);
  setPointer(TEXT + 8, TOKENS + 4 * (text.length - 1));
  for (const [at, token] of text.entries()) setInt(TOKENS + 4 * at, token);
  view.setUint8(WISH, 1);
  setInt(WISH + 4, room);
  setInt(WISH + 8, text.length - 1);
  setInt(WISH + 12, text.at(-1) ?? 0);
  setPointer(WISH + 16, TEXT);
  setPointer(WISH + 24, GUESS);
  // As llama.cpp clears a vector: its memory stays.
  view.setBigUint64(GUESS + 8, view.getBigUint64(GUESS, true), true);
  call.guess(0n, BigInt(WISHES));
  const [from, to] = [0, 8].map((at) => Number(view.getBigUint64(GUESS + at, true)));
  return Array.from({ length: (to! - from!) / 4 }, (_, at) => view.getInt32(from! + 4 * at, true));
}

const count = (from: number, length: number): number[] => Array.from({ length }, (_, at) => from + at);
/** A text that says 1, 2, 3 … twice, and has said so many of them the second time. */
const again = (said: number): number[] => [...count(1, 100), ...count(1, said)];

/** What is guessed where two guesses have been right, so that more is. */
function guessedOn(text: readonly number[], situation: Situation = {}): number[] {
  guessed(text.slice(0, -6), situation);
  guessed(text.slice(0, -4), situation);
  return guessed(text, situation);
}

/** What is guessed, step by step, when all guesses are right. */
function rightLengths(steps: number): number[] {
  let said = 4;
  return Array.from({ length: steps }, () => {
    const { length } = guessed(again(said));
    said += length + 1;
    return length;
  });
}

/** The same when all are wrong: what follows is something else, and then again what a guess can be made from. */
function wrongLengths(steps: number, situation: Situation = {}): number[] {
  return Array.from({ length: steps }, (_, step) => {
    const text = [...count(1, 100), ...Array.from({ length: step }, () => 0), ...count(1, 4)];
    return guessed(text, situation).length;
  });
}

describe("what repeats", () => {
  test("is guessed as it went on before", () => {
    expect(guessed(again(5))).toEqual([6]);
    expect(guessedOn(again(20), { task: 2 })).toEqual(count(21, 7));
  });

  test("is guessed as it went on where the text before it was most alike, not where it stood last", () => {
    const text = [9, 1, 2, 3, 4, 50, 8, 1, 2, 3, 4, 60, 9, 1, 2, 3, 4];
    expect(guessed(text)[0]).toBe(50);
  });

  test("is guessed on beyond the end of the text, which may be a part of what repeats", () => {
    expect(guessedOn(Array.from({ length: 12 }, () => 7))).toEqual([7, 7, 7, 7, 7, 7, 7]);
    const ones = Array.from({ length: 12 }, (_, at) => 1 + (at % 2));
    expect(guessedOn(ones, { task: 2 })).toEqual([1, 2, 1, 2, 1, 2, 1]);
  });

  test("is not guessed behind fewer than four tokens, which are alike by chance", () => {
    expect(guessed([5, 1, 2, 3, 9, 6, 1, 2, 3])).toEqual([]);
    expect(guessed([4])).toEqual([]);
  });

  test("is guessed no further than the request allows, or llama.cpp has room for", () => {
    expect(guessedOn(again(20), { most: 2 })).toEqual([21, 22]);
    expect(guessedOn(again(20), { task: 2, most: 0 })).toEqual([]);
    expect(guessedOn(again(20), { task: 3, room: 3 })).toEqual([21, 22, 23]);
  });

  test("is not guessed where tokens cannot be taken back, as out of Mamba's state", () => {
    expect(guessed(again(5), { removal: 2 })).toEqual([]);
  });
});

describe("the room for guesses", () => {
  test("is what the next step has, with a token for each slot", () => {
    expect(guessedOn(again(20), { batch: 6, slots: 4 })).toEqual([21, 22]);
    expect(guessedOn(again(20), { task: 2, batch: 4, slots: 4 })).toEqual([]);
  });

  test("is what a shared cache has left, which guesses of one must not take from others", () => {
    // Four slots with 119 tokens each.
    expect(guessedOn(again(20), { slots: 4, shared: 4 * (119 + 4) + 3 })).toEqual([21, 22, 23]);
    expect(guessed(again(20), { task: 2, slots: 4, shared: 4 * (119 + 4) })).toEqual([]);
  });

  test("leaves a whole step to a prompt that is being read", () => {
    const situation = { slots: 4, shared: 4 * 104 + 400, isReading: true };
    expect(guessed(again(5), situation)).toEqual([]);
    expect(guessed(again(5), { ...situation, batch: 64 })).toHaveLength(1);
  });
});

describe("guesses", () => {
  test("become longer while they are right", () => {
    expect(rightLengths(5)).toEqual([1, 3, 7, 15, 31]);
  });

  test("become shorter when only their beginning is right", () => {
    expect(guessedOn(again(20))).toHaveLength(7);
    // Two of them were, and a token came that was not guessed.
    const said = [...again(20), 21, 22, 0];
    expect(guessed(said)).toEqual([]);
    expect(guessed([...said, ...count(1, 4)])).toHaveLength(3);
  });

  test("rest when they are wrong, ever longer", () => {
    const made = wrongLengths(400);
    expect(made.slice(0, 3)).toEqual([1, 1, 0]);
    // What 400 steps, and the first 64 of them, have lost: less than three percent.
    const lost = (steps: number): number =>
      made.slice(0, steps).reduce((sum, length) => sum + (length > 0 ? 0.1 + 0.52 * length : 0), 0);
    expect(lost(400)).toBeLessThan(400 * 0.03);
    expect(lost(64)).toBeLessThan(64 * 0.03);
    expect(made.slice(-100).filter((length) => length > 0).length).toBeLessThan(3);
  });

  test("begin anew with the next request, and carefully where they were wrong", () => {
    wrongLengths(100);
    expect(wrongLengths(64, { task: 2 }).filter((length) => length > 0)).toEqual([1]);
    expect(guessed(again(5), { task: 3 })).toHaveLength(1);
  });

  test("are trusted again when they have been right for some time", () => {
    wrongLengths(100);
    let said = 4;
    for (let step = 0; step < 4; step++) said += guessed(again(said), { task: 2 }).length + 1;
    expect(wrongLengths(64, { task: 3 }).slice(0, 3)).toEqual([1, 1, 0]);
  });

  test("are so many that tokens of a step are a multiple of four, where there are more", () => {
    expect(guessedOn(again(20), { most: 6 })).toEqual([21, 22, 23]);
  });

  test("are counted for the step", () => {
    setInt(MEMORY_CELLS.guessedTokens, 0);
    guessed(again(5));
    expect(view.getInt32(MEMORY_CELLS.guessedTokens, true)).toBe(1);
  });
});

/** The kinds of guesses that llama.cpp is told to make when a load allows so many tokens. */
function kindsFor(most: number): number[] {
  setPointer(PARAMS, TOKENS);
  setPointer(PARAMS + 8, TOKENS + 4);
  setInt(TOKENS, 0);
  setInt(PARAMS + 56, most);
  call.speculation(BigInt(PARAMS), 4);
  const [from, to] = [0, 8].map((at) => Number(view.getBigUint64(PARAMS + at, true)));
  return Array.from({ length: (to! - from!) / 4 }, (_, at) => view.getInt32(from! + 4 * at, true));
}

describe("the server's own guessing", () => {
  test("is made to look up what repeats, and to ask a draft model, unless the load allows no guess", () => {
    expect(kindsFor(64)).toEqual([6]);
    expect(kindsFor(65)).toEqual([6, 1]);
    expect(kindsFor(0)).toEqual([0]);
  });
});

/** Whether llama.cpp's own function was called. */
const mark = (): number => view.getInt32(FALLBACK_MARK, true);

const KV_CACHE = 526384n;
const MAMBA = 1n;
/** In hundredths of a step of the model. */
const COST_OF_DRAFT = 17;
const BYTES_OF_TOKEN = 80;

/** A draft model that has read so many tokens. */
function draftWith(read: number, memoryClass = KV_CACHE): void {
  setPointer(DRAFT + 288, DRAFT_CONTEXT);
  setInt(DRAFT_CONTEXT + 16, 64);
  setPointer(DRAFT_CONTEXT + 256, DRAFT_CONTEXT + 1024);
  view.setBigUint64(DRAFT_CONTEXT + 1024, memoryClass, true);
  setInt(TOKENS_READ, read);
  setInt(FALLBACK_MARK, 0);
  view.setFloat32(MEMORY_CELLS.costOfDraft, COST_OF_DRAFT, true);
}

/** Asks it for a guess behind a text in which nothing repeats; returns how many tokens it may guess. */
function asked(length: number, situation: Situation = {}): number {
  expect(guessed(count(1, length), situation)).toEqual([]);
  call.draft(BigInt(DRAFT), BigInt(WISHES));
  return mark() === 1 ? view.getInt32(WISH + 4, true) : 0;
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
    draftWith(kept > 0 ? length - 2 : length - 1);
    setInt(DRAFT_TOKENS, sure);
    const before = view.getInt32(MEMORY_CELLS.guessedTokens, true);
    asked(length, { task });
    made.push(view.getInt32(MEMORY_CELLS.guessedTokens, true) - before);
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
    draftWith(99);
    expect(asked(100)).toBe(1);
    drafted(1, 16, { sure: 0, right: true });
    draftWith(116);
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
    draftWith(99);
    setInt(DRAFT_TOKENS, 1);
    expect(asked(100)).toBe(1);
    draftWith(100);
    expect(asked(130)).toBe(0);
    draftWith(126);
    expect(asked(131)).toBe(1);
  });
});

describe("a draft model", () => {
  test("reads what it lacks before it guesses, and forgets what was wrong", () => {
    draftWith(20);
    expect(asked(100)).toBe(1);
    expect(view.getInt32(TOKENS_READ, true)).toBe(99);
    draftWith(105);
    expect(asked(100, { task: 2 })).toBe(1);
    expect(view.getInt32(TOKENS_READ, true)).toBe(99);
  });

  test("is not asked when it lacks so much that others would wait, or cannot forget", () => {
    draftWith(0);
    expect(asked(600)).toBe(0);
    draftWith(99, MAMBA);
    expect(asked(100, { task: 2 })).toBe(0);
  });

  test("is not asked where the request allows no guess", () => {
    draftWith(99);
    expect(asked(100, { most: 0 })).toBe(0);
  });

  test.each([
    ["reads a prompt along with the model", { state: READING, first: 10, read: 10, reads: 1, rests: false }],
    ["reads no prompt while it rests", { state: READING, first: 10, read: 10, reads: 0, rests: true }],
    [
      "does not read what the model generates, unless it is asked",
      { state: GENERATING, first: 10, read: 10, reads: 0, rests: false },
    ],
    [
      "does not read on where it has not read what comes before",
      { state: READING, first: 10, read: 4, reads: 0, rests: false },
    ],
  ])("%s", (_what, { state, first, read, reads, rests }) => {
    if (rests) drafted(1, 16, { sure: 1, right: false });
    guessed(count(1, 20));
    setInt(SLOTS + AT.slotState, state);
    draftWith(read);
    setPointer(BATCH, TOKENS);
    setPointer(BATCH + 8, TOKENS + 3 * BYTES_OF_TOKEN);
    for (let at = 0; at < 3; at++) {
      setInt(TOKENS + at * BYTES_OF_TOKEN, 7);
      setInt(TOKENS + at * BYTES_OF_TOKEN + 4, first + at);
      setInt(TOKENS + at * BYTES_OF_TOKEN + 20, 0);
    }
    expect(call.draft_process(BigInt(DRAFT), BigInt(BATCH))).toBe(1);
    expect(mark()).toBe(reads);
  });
});

/** Gives the request of a slot tokens, in a list as the engine's script makes it. */
function give(tokens: readonly number[], { number = 3, oneByOne = false } = {}): void {
  setPointer(GIVEN, 0);
  setInt(GIVEN + 8, number);
  setInt(GIVEN + 12, tokens.length);
  setInt(GIVEN + 16, 0);
  setInt(GIVEN + 20, Number(oneByOne));
  for (const [at, token] of tokens.entries()) setInt(GIVEN + 24 + 4 * at, token);
  setPointer(MEMORY_CELLS.givenTokens, GIVEN);
  view.setUint16(TASK + AT.number, 3, true);
  setPointer(SLOTS + AT.slotSampler, SAMPLER);
  setPointer(SLOTS + AT.slotDraft, 0);
}

/** What is said where the model would say `choice`. */
function saidFor(choice: number, sampler = SAMPLER): number {
  setInt(CHOICE, choice);
  return Number(call.sample(BigInt(sampler), BigInt(CONTEXT), 0, 0));
}

/** The tokens that the script is told, with the request's number. */
function told(): [number, number][] {
  const at = Number(view.getBigUint64(MEMORY_CELLS.chosenTokens, true));
  const length = view.getUint32(MEMORY_CELLS.chosenCount, true);
  return Array.from({ length }, (_, index) => [
    view.getInt32(at + 8 * index, true),
    view.getInt32(at + 8 * index + 4, true),
  ]);
}

describe("tokens that an answer is given", () => {
  beforeEach(() => {
    guessed(count(1, 20));
    give([10, 11, 12]);
  });

  test("are said in place of what the model chooses, which the script is told, and then the model's own", () => {
    expect([10, 50, 12, 60, 61].map((choice) => saidFor(choice))).toEqual([10, 11, 12, 60, 61]);
    expect(told()).toEqual([
      [3, 10],
      [3, ~11],
      [3, 12],
      [3, 60],
      [3, 61],
    ]);
  });

  test("are guessed, as many as have not been said and fit, and sum up as one by one", () => {
    const situation = { most: 0, removal: CAN_TAKE_BACK };
    expect(guessed(count(1, 20), situation)).toEqual([10, 11, 12]);
    expect(view.getUint8(MEMORY_CELLS.sumsOfOneToken)).toBe(1);
    saidFor(10);
    expect(guessed(count(1, 20), situation)).toEqual([11, 12]);
    expect(guessed(count(1, 20), { ...situation, room: 1 })).toEqual([11]);
    expect(guessed(count(1, 20), { ...situation, batch: 2 })).toEqual([11]);
    give(count(1, 100));
    expect(guessed(count(1, 20), situation)).toEqual(count(1, 63));
  });

  test("are not guessed where log-probabilities are asked for, or tokens cannot be taken back", () => {
    give([10, 11, 12], { oneByOne: true });
    expect(guessed(count(1, 20))).toEqual([]);
    give([10, 11, 12]);
    expect(guessed(count(1, 20), { removal: 2 })).toEqual([]);
    expect(saidFor(50)).toBe(10);
  });

  test("are for their request alone, and not for a draft model's choice", () => {
    give([10, 11, 12], { number: 4 });
    expect(saidFor(50)).toBe(50);
    give([10, 11, 12]);
    expect(saidFor(50, SAMPLER + 8)).toBe(50);
    view.setUint16(TASK + AT.number, 0, true);
    expect(saidFor(50)).toBe(50);
    expect(told()).toEqual([[3, 50]]);
  });

  test("are not said where llama.cpp chooses twice, as with a draft model whose guesses cannot be taken back", () => {
    setPointer(SLOTS + AT.slotDraft, DRAFT_CONTEXT);
    setInt(SERVER + AT.removal, 2);
    expect(saidFor(50)).toBe(50);
    expect(told()).toEqual([]);
  });
});
