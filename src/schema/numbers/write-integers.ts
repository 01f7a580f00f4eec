import type { GrammarWriter } from "../gbnf/grammar-writer.ts";

/** Most digits of an integer without an upper bound: more than any count, time or key has. */
const OPEN_DIGITS = 20;

/** The largest double, and digits of integers that surely are doubles. */
const LARGEST = BigInt(Number.MAX_VALUE).toString();
const MAX_DIGITS = 308;

/**
 * Writes the integers from one to another, neither of them negative, in decimal digits.
 * @param to undefined: without an upper bound, which are {@link OPEN_DIGITS} digits, or one more than the lower bound has
 * @returns a sequence of GBNF
 */
export function writeIntegers(writer: GrammarWriter, from: bigint, to: bigint | undefined): string {
  const low = from.toString();
  const open = Math.max(OPEN_DIGITS, low.length + 1);
  const high = to?.toString() ?? (open > MAX_DIGITS ? LARGEST : "9".repeat(open));
  const choices: string[] = [];
  // Numbers of one length each; those of all lengths between are alike.
  const lengthsFree: number[] = [];
  for (let length = low.length; length <= high.length; length += 1) {
    const first = length === low.length ? low : `1${"0".repeat(length - 1)}`;
    const last = length === high.length ? high : "9".repeat(length);
    const isFree = /^10*$/.test(first) && /^9+$/.test(last);
    if (isFree) lengthsFree.push(length);
    else if (length === 1 && first === "0" && last === "9" && high.length > 1) {
      choices.push('"0"');
      lengthsFree.push(1);
    } else choices.push(ofOneLength(writer, first, last));
  }
  const [shortest, longest] = [lengthsFree[0], lengthsFree.at(-1)];
  if (shortest !== undefined && longest !== undefined)
    choices.push(`[1-9]${digits(shortest - 1, longest - 1)}`);
  return choices.length === 1 ? (choices[0] ?? "") : writer.rule("digits", choices.join(" | "));
}

/** Numbers between two of the same length, which may begin with zeros. */
function ofOneLength(writer: GrammarWriter, low: string, high: string): string {
  const [first, last] = [Number(low[0]), Number(high[0])];
  const rest = low.length - 1;
  if (/^0*$/.test(low) && /^9*$/.test(high)) return digits(low.length, low.length).trimStart();
  if (rest === 0) return set(first, last);
  if (first === last) return `"${first}" ${ofOneLength(writer, low.slice(1), high.slice(1))}`;
  const choices: string[] = [];
  const isLowFree = /^0*$/.test(low.slice(1));
  const isHighFree = /^9*$/.test(high.slice(1));
  if (!isLowFree) choices.push(`"${first}" ${ofOneLength(writer, low.slice(1), "9".repeat(rest))}`);
  const [from, to] = [isLowFree ? first : first + 1, isHighFree ? last : last - 1];
  if (from <= to) choices.push(`${set(from, to)}${digits(rest, rest)}`);
  if (!isHighFree) choices.push(`"${last}" ${ofOneLength(writer, "0".repeat(rest), high.slice(1))}`);
  return writer.rule("digits", choices.join(" | "));
}

const set = (from: number, to: number): string => (from === to ? `"${from}"` : `[${from}-${to}]`);

function digits(min: number, max: number): string {
  if (max === 0) return "";
  if (min === 1 && max === 1) return " [0-9]";
  return min === max ? ` [0-9]{${min}}` : ` [0-9]{${min},${max}}`;
}
