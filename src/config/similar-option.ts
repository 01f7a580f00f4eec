import { configOptions } from "./config-options.ts";

/** Letters that a slip of the fingers changes. */
const MOST_SLIPS = 2;

/** The option that somebody may have meant with a name that is none: misspelled, or without its table. */
export function similarOption(name: string): string | undefined {
  const names = configOptions.map((option) => option.name);
  const elsewhere = names.filter((each) => each.endsWith(`.${name}`));
  if (elsewhere.length === 1) return elsewhere[0];
  const [nearest] = names
    .map((each) => ({ each, slips: slips(name, each) }))
    .toSorted((one, other) => one.slips - other.slips);
  return nearest && nearest.slips <= MOST_SLIPS && nearest.slips < name.length / 2 ? nearest.each : undefined;
}

/** Letters to insert, remove, replace or swap with the next one. */
function slips(from: string, to: string): number {
  let before: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1];
      const isSwapped =
        row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      current[column] = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (isSame ? 0 : 1),
        ...(isSwapped ? [(before[column - 2] ?? 0) + 1] : []),
      );
    }
    [before, last] = [last, current];
  }
  return last.at(-1) ?? 0;
}
