import { beforeEach, describe, expect, test } from "vitest";
import { OFFSETS } from "../../../wasm/llama-cpp-build.ts";
import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";
import { count, GuessingHost, PLACES, REMOVAL } from "../../support/guessing-host.ts";
import { CHOICE } from "../../support/kernel-host-module.ts";

let host: GuessingHost;
beforeEach(async () => {
  host = await GuessingHost.start();
});

/** Gives the request of a slot tokens, in a list as the engine's script makes it. */
function give(tokens: readonly number[], { number = 3, oneByOne = false } = {}): void {
  host.setPointer(PLACES.given, 0);
  host.setInt(PLACES.given + 8, number);
  host.setInt(PLACES.given + 12, tokens.length);
  host.setInt(PLACES.given + 16, 0);
  host.setInt(PLACES.given + 20, Number(oneByOne));
  for (const [at, token] of tokens.entries()) host.setInt(PLACES.given + 24 + 4 * at, token);
  host.setPointer(MEMORY_CELLS.givenTokens, PLACES.given);
  host.setNumber(3);
  host.setPointer(host.slotField(0, "smpl"), PLACES.sampler);
  host.setPointer(host.slotField(0, "ctx_dft"), 0);
}

/** What is said where the model would say `choice`. */
function saidFor(choice: number, sampler = PLACES.sampler): number {
  host.setInt(CHOICE, choice);
  return Number(host.call.sample(BigInt(sampler), BigInt(PLACES.context), 0, 0));
}

/** The tokens that the script is told, with the request's number. */
function told(): [number, number][] {
  const at = Number(host.view.getBigUint64(MEMORY_CELLS.chosenTokens, true));
  const length = host.view.getUint32(MEMORY_CELLS.chosenCount, true);
  return Array.from({ length }, (_, index) => [host.int(at + 8 * index), host.int(at + 8 * index + 4)]);
}

describe("tokens that an answer is given", () => {
  beforeEach(() => {
    host.guessed(count(1, 20));
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
    const situation = { most: 0, removal: REMOVAL.any };
    expect(host.guessed(count(1, 20), situation)).toEqual([10, 11, 12]);
    expect(host.view.getUint8(MEMORY_CELLS.sumsOfOneToken)).toBe(1);
    saidFor(10);
    expect(host.guessed(count(1, 20), situation)).toEqual([11, 12]);
    expect(host.guessed(count(1, 20), { ...situation, room: 1 })).toEqual([11]);
    expect(host.guessed(count(1, 20), { ...situation, batch: 2 })).toEqual([11]);
    give(count(1, 100));
    expect(host.guessed(count(1, 20), situation)).toEqual(count(1, 63));
  });

  test("are not guessed where log-probabilities are asked for, or tokens cannot be taken back", () => {
    give([10, 11, 12], { oneByOne: true });
    expect(host.guessed(count(1, 20))).toEqual([]);
    give([10, 11, 12]);
    expect(host.guessed(count(1, 20), { removal: REMOVAL.whole })).toEqual([]);
    expect(saidFor(50)).toBe(10);
  });

  test("are for their request alone, and not for a draft model's choice", () => {
    give([10, 11, 12], { number: 4 });
    expect(saidFor(50)).toBe(50);
    give([10, 11, 12]);
    expect(saidFor(50, PLACES.sampler + 8)).toBe(50);
    host.setNumber(0);
    expect(saidFor(50)).toBe(50);
    expect(told()).toEqual([[3, 50]]);
  });

  test("are not said where llama.cpp chooses twice, as with a draft model whose guesses cannot be taken back", () => {
    host.setPointer(host.slotField(0, "ctx_dft"), PLACES.draftContext);
    host.setInt(PLACES.server + OFFSETS["server_context_impl.ctx_tgt_seq_rm_type"].at, REMOVAL.whole);
    expect(saidFor(50)).toBe(50);
    expect(told()).toEqual([]);
  });
});
