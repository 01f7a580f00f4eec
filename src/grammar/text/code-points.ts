/**
 * Set of code points: inclusive ranges as a flat list (first, last, first, last, …), ascending, with a gap between any
 * two.
 */
export type CodePoints = readonly number[];

export const LAST_CODE_POINT = 0x10ffff;
export const ALL_CODE_POINTS: CodePoints = [0, LAST_CODE_POINT];
/** Code points of UTF-8: unlike JavaScript strings, it has no lone surrogates. */
export const ALL_BUT_SURROGATES: CodePoints = [0, 0xd7ff, 0xe000, LAST_CODE_POINT];
/** Code points that need no escape in a JSON string. */
export const UNESCAPED: CodePoints = [0x20, 0x21, 0x23, 0x5b, 0x5d, 0xd7ff, 0xe000, LAST_CODE_POINT];

/** Code points of `\d` and `\w`; those of `\s` differ between kinds of regular expressions. */
export const DIGITS: CodePoints = [0x30, 0x39];
export const WORD: CodePoints = [0x30, 0x39, 0x41, 0x5a, 0x5f, 0x5f, 0x61, 0x7a];

/** Creates a set from ranges in any order. */
export function codePoints(ranges: readonly (readonly [first: number, last: number])[]): CodePoints {
  const result: number[] = [];
  for (const [first, last] of ranges.toSorted(([a], [b]) => a - b)) {
    const end = result.at(-1);
    if (end !== undefined && first <= end + 1) result[result.length - 1] = Math.max(end, last);
    else result.push(first, last);
  }
  return result;
}

export const oneCodePoint = (point: number): CodePoints => [point, point];

/** Returns the ranges of a set as pairs. */
export function rangesOf(set: CodePoints): [first: number, last: number][] {
  const ranges: [number, number][] = [];
  for (let at = 0; at < set.length; at += 2) ranges.push([set[at] ?? 0, set[at + 1] ?? 0]);
  return ranges;
}

export const unionOf = (a: CodePoints, b: CodePoints): CodePoints =>
  codePoints([...rangesOf(a), ...rangesOf(b)]);

export function complementOf(set: CodePoints): CodePoints {
  const result: number[] = [];
  let from = 0;
  for (const [first, last] of rangesOf(set)) {
    if (first > from) result.push(from, first - 1);
    from = last + 1;
  }
  if (from <= LAST_CODE_POINT) result.push(from, LAST_CODE_POINT);
  return result;
}

export function intersectionOf(a: CodePoints, b: CodePoints): CodePoints {
  const result: number[] = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    const [aLast = 0, bLast = 0] = [a[i + 1], b[j + 1]];
    const first = Math.max(a[i] ?? 0, b[j] ?? 0);
    const last = Math.min(aLast, bLast);
    if (first <= last) result.push(first, last);
    if (aLast < bLast) i += 2;
    else j += 2;
  }
  return result;
}

/** True if the set contains the code point, by binary search. */
export function hasCodePoint(set: CodePoints, point: number): boolean {
  let [low, high] = [0, set.length / 2 - 1];
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (point < (set[2 * middle] ?? 0)) high = middle - 1;
    else if (point > (set[2 * middle + 1] ?? 0)) low = middle + 1;
    else return true;
  }
  return false;
}
