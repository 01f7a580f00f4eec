import { beforeEach, describe, expect, test } from "vitest";
import { OFFSETS } from "../../../wasm/llama-cpp-build.ts";
import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";
import { count, GuessingHost, PLACES, REMOVAL } from "../../support/guessing-host.ts";
import { CHOICE } from "../../support/kernel-host-module.ts";

let host: GuessingHost;
beforeEach(async () => {
  host = await GuessingHost.start();
});

/** Adds forced tokens for a slot's request, in a list like that of the engine's script. */
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

/** Token that is emitted when the model would choose `choice`. */
function saidFor(choice: number, sampler = PLACES.sampler): number {
  host.setInt(CHOICE, choice);
  return Number(host.call.sample(BigInt(sampler), BigInt(PLACES.context), 0, 0));
}

/** Chosen tokens that the script gets, with the request's number. */
function reportedTokens(): [number, number][] {
  const at = Number(host.view.getBigUint64(MEMORY_CELLS.chosenTokens, true));
  const length = host.view.getUint32(MEMORY_CELLS.chosenCount, true);
  return Array.from({ length }, (_, index) => [host.int(at + 8 * index), host.int(at + 8 * index + 4)]);
}

describe("forced tokens of an answer", () => {
  beforeEach(() => {
    host.guessed(count(1, 20));
    give([10, 11, 12]);
  });

  test("replace the model's choices, which are reported to the script, until they are used up", () => {
    expect([10, 50, 12, 60, 61].map((choice) => saidFor(choice))).toEqual([10, 11, 12, 60, 61]);
    expect(reportedTokens()).toEqual([
      [3, 10],
      [3, ~11],
      [3, 12],
      [3, 60],
      [3, 61],
    ]);
  });

  test("are drafted, as many as remain and fit, and evaluated with the additions of single tokens", () => {
    const situation = { most: 0, removal: REMOVAL.any };
    expect(host.guessed(count(1, 20), situation)).toEqual([10, 11, 12]);
    expect(host.view.getUint8(MEMORY_CELLS.sumsOfOneToken)).toBe(1);
    saidFor(10);
    expect(host.guessed(count(1, 20), situation)).toEqual([11, 12]);
    expect(host.guessed(count(1, 20), { ...situation, freeCells: 1 })).toEqual([11]);
    expect(host.guessed(count(1, 20), { ...situation, batch: 2 })).toEqual([11]);
    give(count(1, 100));
    expect(host.guessed(count(1, 20), situation)).toEqual(count(1, 63));
  });

  test("are not drafted if log-probabilities are requested, or tokens cannot be removed", () => {
    give([10, 11, 12], { oneByOne: true });
    expect(host.guessed(count(1, 20))).toEqual([]);
    give([10, 11, 12]);
    expect(host.guessed(count(1, 20), { removal: REMOVAL.whole })).toEqual([]);
    expect(saidFor(50)).toBe(10);
  });

  test("apply only to their request, and not to a draft model's choices", () => {
    give([10, 11, 12], { number: 4 });
    expect(saidFor(50)).toBe(50);
    give([10, 11, 12]);
    expect(saidFor(50, PLACES.sampler + 8)).toBe(50);
    host.setNumber(0);
    expect(saidFor(50)).toBe(50);
    expect(reportedTokens()).toEqual([[3, 50]]);
  });

  test("are not counted when llama.cpp samples twice, as with a draft model whose tokens cannot be removed", () => {
    host.setPointer(host.slotField(0, "ctx_dft"), PLACES.draftContext);
    host.setInt(PLACES.server + OFFSETS["server_context_impl.ctx_tgt_seq_rm_type"].at, REMOVAL.whole);
    expect(saidFor(50)).toBe(50);
    expect(reportedTokens()).toEqual([]);
  });
});
