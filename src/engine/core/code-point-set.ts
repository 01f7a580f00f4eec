/** A range of code points, both ends included. */
export type CodePoints = readonly [first: number, last: number];

/** All that JSON text can hold as it is: no control characters, quotes, backslashes or halves of surrogate pairs. */
const AS_IT_IS: readonly CodePoints[] = [
  [0x20, 0x21],
  [0x23, 0x5b],
  [0x5d, 0x7e],
  [0x80, 0xd7ff],
  [0xe000, 0x10ffff],
];

/** The part of a set that JSON text can hold as it is. */
export function plainPart(set: readonly CodePoints[]): CodePoints[] {
  return merged(
    AS_IT_IS.flatMap(([first, last]) =>
      set
        .map(([from, to]): CodePoints => [Math.max(first, from), Math.min(last, to)])
        .filter(([from, to]) => from <= to),
    ),
  );
}

/** What JSON text can hold as it is, without a set. */
export function plainRest(set: readonly CodePoints[]): CodePoints[] {
  let rest: CodePoints[] = [...AS_IT_IS];
  for (const [from, to] of set) {
    rest = rest.flatMap(([first, last]) =>
      (
        [
          [first, Math.min(last, from - 1)],
          [Math.max(first, to + 1), last],
        ] as const
      ).filter(([low, high]) => low <= high),
    );
  }
  return rest;
}

/** The members of a set that JSON text holds by an escape only. */
export function escapedPart(set: readonly CodePoints[]): number[] {
  const all = [...Array.from({ length: 0x20 }, (_, control) => control), 0x22, 0x5c];
  return all.filter((point) => set.some(([from, to]) => from <= point && point <= to));
}

function merged(set: readonly CodePoints[]): CodePoints[] {
  const result: CodePoints[] = [];
  for (const [from, to] of set.toSorted(([a], [b]) => a - b)) {
    const before = result.at(-1);
    if (before && from <= before[1] + 1) result[result.length - 1] = [before[0], Math.max(before[1], to)];
    else result.push([from, to]);
  }
  return result;
}
