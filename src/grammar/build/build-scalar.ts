import type { NumberBounds } from "../numbers/number-bounds.ts";
import { hasNoNumber, writeNumber } from "../numbers/write-number.ts";
import type { Branch } from "../terms/branch.ts";
import { ALL_BUT_SURROGATES } from "../text/code-points.ts";
import type { TextSet } from "../text/text-set.ts";
import { writeCharacter, writeString } from "../text/write-text.ts";
import { type BuildContext, choice, NOTHING, type Part, repeat, sequence, text } from "./part.ts";

/** Character of a JSON string. */
const CHARACTER: Part = {
  kind: "leaf",
  write: (writer) => writeCharacter(writer, ALL_BUT_SURROGATES, "json"),
};

/** Builds the strings of a branch. */
export function buildString(branch: Branch, { texts, reportGap }: BuildContext, hint: string): Part {
  const { minLength, maxLength } = branch;
  if (branch.texts.length === 0 && branch.otherThan.size === 0) {
    return sequence(text('"'), repeat(CHARACTER, minLength, maxLength), text('"'));
  }
  if (!texts.combinesLengths(branch)) {
    if (minLength > 0) reportGap("minLength");
    if (Number.isFinite(maxLength)) reportGap("maxLength");
  }
  return stringPart(texts.ofBranch(branch), hint);
}

/** Builds the strings of a set, or any string. */
export function stringPart(set: TextSet | undefined, hint: string): Part {
  if (set === undefined || set.isAny) return sequence(text('"'), repeat(CHARACTER, 0, Infinity), text('"'));
  if (set.isEmpty()) return NOTHING;
  return { kind: "leaf", write: (writer) => writeString(writer, set, { hint }) };
}

/** Most excluded numbers, each of which divides the range. */
const MAX_EXCLUDED = 12;

/** Builds the numbers of a branch. */
export function buildNumber({ number }: Branch, context: BuildContext): Part {
  const excluded = [...new Set(number.excluded)].toSorted((a, b) => a - b);
  const isTooMany = excluded.length > MAX_EXCLUDED;
  if (isTooMany) context.reportGap("enum");
  const ranges = isTooMany ? [number] : divided(number, excluded);
  return choice(ranges.map((bounds) => rangePart(bounds, context)));
}

function divided(bounds: NumberBounds, excluded: readonly number[]): NumberBounds[] {
  const { exclusiveMinimum: low = -Infinity, exclusiveMaximum: high = Infinity } = bounds;
  const ranges: NumberBounds[] = [];
  let from = low;
  for (const end of [...excluded, Infinity]) {
    const to = Math.min(high, end);
    ranges.push({ ...bounds, exclusiveMinimum: from, exclusiveMaximum: to });
    from = Math.max(low, end);
  }
  return ranges;
}

function rangePart(bounds: NumberBounds, { reportGap }: BuildContext): Part {
  if (hasNoNumber(bounds)) return NOTHING;
  return {
    kind: "leaf",
    write: (writer) => {
      const exact = writeNumber(writer, bounds);
      if (exact !== undefined) return exact;
      reportGap("multipleOf");
      const rest = writeNumber(writer, { ...bounds, multipleOf: [] });
      return rest ?? writeNumber(writer, { isInteger: bounds.isInteger }) ?? '"0"';
    },
  };
}
