import type { FunctionFinder } from "./find-functions.ts";
import type { ImmediateKind } from "./instructions.ts";

/** Where a number of the old module's code is in the new one. */
export interface NumberPlaces {
  readonly value: number | undefined;
  /** Places that say so, and those that say something else. */
  readonly votes: number;
  readonly against: number;
  /** All places that use the old number; some of their instructions have no counterpart in the new module. */
  readonly of: number;
  /** The code does not use it, but numbers before and after it have moved equally far. */
  readonly isGuess: boolean;
}

/** How far a neighbor may be from a number that is not in the code itself. */
const NEIGHBORHOOD = 256;

/**
 * Finds an address or an offset by the instructions that have it: what those have in the new module that stand for them.
 * @param functions where to look, in the old module
 */
export function findNumber(
  finder: FunctionFinder,
  functions: readonly number[],
  number: number,
  kinds: readonly ImmediateKind[],
): NumberPlaces {
  const direct = placesOf(finder, functions, kinds, (each) => each === number);
  const found = mostVoted(direct.get(number) ?? []);
  const of = direct.get(number)?.length ?? 0;
  if (of > 0) {
    const { value, votes, against } = found ?? { value: undefined, votes: 0, against: 0 };
    return { value, votes, against, of, isGuess: false };
  }
  const near = placesOf(finder, functions, kinds, (each) => Math.abs(each - number) <= NEIGHBORHOOD);
  const moves = [...near].flatMap(([old, values]) => {
    const value = mostVoted(values)?.value;
    return value === undefined ? [] : [{ old, by: value - old }];
  });
  const below = moves.filter(({ old }) => old < number).toSorted((a, b) => b.old - a.old)[0];
  const above = moves.filter(({ old }) => old > number).toSorted((a, b) => a.old - b.old)[0];
  const isGuess = below !== undefined && below.by === above?.by;
  return { value: isGuess ? number + below.by : undefined, votes: 0, against: 0, of: 0, isGuess };
}

/** Number of the old module → what each of its instructions has in the new one, undefined where none stands for it. */
function placesOf(
  finder: FunctionFinder,
  functions: readonly number[],
  kinds: readonly ImmediateKind[],
  isWanted: (number: number) => boolean,
): Map<number, (number | undefined)[]> {
  const places = new Map<number, (number | undefined)[]>();
  for (const index of functions) {
    const code = finder.before.code(index);
    const at = [...code.keys()].filter((each) => {
      const { kind, number } = code[each]!;
      return kinds.includes(kind) && isWanted(number);
    });
    const counterpart = at.length > 0 ? finder.find(index) : undefined;
    const alignment = counterpart && finder.alignment(index, counterpart.index);
    const after = counterpart ? finder.after.code(counterpart.index) : [];
    for (const each of at) {
      const { number } = code[each]!;
      const value = after[alignment?.places[each] ?? -1]?.number;
      places.set(number, [...(places.get(number) ?? []), value]);
    }
  }
  return places;
}

function mostVoted(
  values: readonly (number | undefined)[],
): { readonly value: number; readonly votes: number; readonly against: number } | undefined {
  const known = values.filter((value) => value !== undefined);
  const [best] = [...Map.groupBy(known, (value) => value)].toSorted((a, b) => b[1].length - a[1].length);
  return best && { value: best[0], votes: best[1].length, against: known.length - best[1].length };
}
