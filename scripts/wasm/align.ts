import type { Instruction } from "./instructions.ts";

/** Length of an instruction sequence that must be unique in both functions to serve as an anchor. */
const ANCHOR_LENGTH = 8;

/** Constants from here on may be addresses of data, which move from build to build. */
const FIRST_ADDRESS = 1024;

/** An instruction without what changes between builds: functions, addresses, locals and offsets in structures. */
const shapeOf = ({ opcode, kind, number }: Instruction): number =>
  kind === "constant" && Math.abs(number) < FIRST_ADDRESS ? opcode * 4096 + number + 1024 : opcode * 4096;

/** Which instructions of two functions correspond. */
export interface Alignment {
  /** For each instruction of the old function its place in the new one, or -1. */
  readonly places: Int32Array;
  /** Share of instructions that have a counterpart: 1 for functions that differ only in what changes between builds. */
  readonly similarity: number;
}

/**
 * Finds which instructions of two functions stand for each other: those around sequences that occur in both just once,
 * as long as they are the same.
 */
export function align(before: readonly Instruction[], after: readonly Instruction[]): Alignment {
  const [old, fresh] = [before.map(shapeOf), after.map(shapeOf)];
  const places = new Int32Array(old.length).fill(-1);
  let [lastOld, lastNew, pairs] = [0, 0, 0];
  const pair = (i: number, j: number): void => {
    places[i] = j;
    pairs++;
  };
  for (const [i, j] of [...anchors(old, fresh), [old.length, fresh.length] as const]) {
    if (i < lastOld || j < lastNew) continue;
    // From the last anchor forwards, then from this one backwards.
    while (lastOld < i && lastNew < j && old[lastOld] === fresh[lastNew]) pair(lastOld++, lastNew++);
    for (let back = 1; i - back >= lastOld && j - back >= lastNew; back++) {
      if (old[i - back] !== fresh[j - back]) break;
      pair(i - back, j - back);
    }
    [lastOld, lastNew] = [i, j];
  }
  const total = old.length + fresh.length;
  return { places, similarity: total === 0 ? 1 : (2 * pairs) / total };
}

/** Places of sequences that both have once, the most of them that are in the same order in both. */
function anchors(old: readonly number[], fresh: readonly number[]): (readonly [number, number])[] {
  const [inOld, inNew] = [onlyPlaces(old), onlyPlaces(fresh)];
  const pairs = [...inOld].flatMap(([key, i]) => {
    const j = inNew.get(key);
    return i < 0 || j === undefined || j < 0 ? [] : [[i, j] as const];
  });
  return longestRising(pairs);
}

function onlyPlaces(shapes: readonly number[]): Map<string, number> {
  const places = new Map<string, number>();
  for (let at = 0; at + ANCHOR_LENGTH <= shapes.length; at++) {
    const key = shapes.slice(at, at + ANCHOR_LENGTH).join();
    places.set(key, places.has(key) ? -1 : at);
  }
  return places;
}

function longestRising(pairs: readonly (readonly [number, number])[]): (readonly [number, number])[] {
  const tails: number[] = [];
  const before: number[] = [];
  for (const [at, [, j]] of pairs.entries()) {
    let [low, high] = [0, tails.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (pairs[tails[middle]!]![1] < j) low = middle + 1;
      else high = middle;
    }
    before.push(low > 0 ? tails[low - 1]! : -1);
    tails[low] = at;
  }
  const rising: (readonly [number, number])[] = [];
  for (let at = tails.at(-1) ?? -1; at >= 0; at = before[at]!) rising.push(pairs[at]!);
  return rising.toReversed();
}
