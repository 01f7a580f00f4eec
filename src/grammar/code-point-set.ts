/** Inclusive range of code points. */
export type CodePoints = readonly [first: number, last: number];

/** Code points of `\d` and `\w`; those of `\s` differ between kinds of regular expressions. */
export const DIGITS: readonly CodePoints[] = [[0x30, 0x39]];
export const WORD: readonly CodePoints[] = [
  [0x30, 0x39],
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
];
/** Whitespace and line terminators of ECMA-262. */
export const BLANKS: readonly CodePoints[] = [
  [0x09, 0x0d],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
];
/** Line terminators of ECMA-262. */
export const LINE_ENDS: readonly CodePoints[] = [
  [0x0a, 0x0a],
  [0x0d, 0x0d],
  [0x2028, 0x2029],
];

/** Range of one character. */
export function pointOf(character: string): CodePoints {
  const point = character.codePointAt(0) ?? 0;
  return [point, point];
}

/** Code points that need no escape in JSON: no control characters, quotes, backslashes or surrogates. */
const UNESCAPED: readonly CodePoints[] = [
  [0x20, 0x21],
  [0x23, 0x5b],
  [0x5d, 0x7e],
  [0x80, 0xd7ff],
  [0xe000, 0x10ffff],
];

/** Members of a set that need no escape in JSON. */
export function unescapedIn(set: readonly CodePoints[]): CodePoints[] {
  return merged(
    UNESCAPED.flatMap(([first, last]) =>
      set
        .map(([from, to]): CodePoints => [Math.max(first, from), Math.min(last, to)])
        .filter(([from, to]) => from <= to),
    ),
  );
}

/** Code points outside a set that need no escape in JSON. */
export function unescapedOutside(set: readonly CodePoints[]): CodePoints[] {
  return without(UNESCAPED, set);
}

/** Subtracts a set from an ordered one, in linear time, as a class may have thousands of characters. */
export function without(all: readonly CodePoints[], set: readonly CodePoints[]): CodePoints[] {
  const others = merged(set);
  const rest: CodePoints[] = [];
  let next = 0;
  for (const [first, last] of all) {
    while ((others[next]?.[1] ?? Infinity) < first) next += 1;
    let from = first;
    for (let at = next; from <= last; at += 1) {
      const [start, end] = others[at] ?? [Infinity, Infinity];
      if (start > from) rest.push([from, Math.min(last, start - 1)]);
      from = end + 1;
    }
  }
  return rest;
}

/** Members of a set that need an escape in JSON. */
export function escapedIn(set: readonly CodePoints[]): number[] {
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
