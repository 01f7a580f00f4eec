import type { NumberBounds } from "../numbers/number-bounds.ts";
import { hasNoNumber, writeNumber } from "../numbers/write-number.ts";
import type { Branch, NumberFacts } from "../terms/branch.ts";
import { ALL_BUT_SURROGATES } from "../text/code-points.ts";
import type { TextSet } from "../text/text-set.ts";
import { writeCharacter, writeString } from "../text/write-text.ts";
import type { ValueBuilder } from "./build-value.ts";
import { choice, NOTHING, type Part, repeat, sequence, text } from "./part.ts";

/** Character of a JSON string. */
const CHARACTER: Part = {
  kind: "leaf",
  write: (writer) => writeCharacter(writer, ALL_BUT_SURROGATES, "json"),
};

/** Builds the strings of a branch. */
export function buildString(branch: Branch, builder: ValueBuilder, hint: string): Part {
  const { texts, reportGap } = builder.parts;
  const { minLength, maxLength } = branch;
  if (branch.texts.length === 0 && branch.otherThan.size === 0) {
    return sequence(text('"'), repeat(CHARACTER, minLength, maxLength), text('"'));
  }
  if (!texts.combinesLengths(branch)) {
    for (const keyword of ["minLength", "maxLength"] as const) {
      if (keyword === "minLength" ? minLength === 0 : !Number.isFinite(maxLength)) continue;
      const reason = "so long a limit is not combined with other rules for the text";
      reportGap({ path: branch.pathOf(keyword), keyword, reason, kind: "checked" });
    }
  }
  return stringPart(texts.ofBranch(branch), builder, hint);
}

/** Builds the strings of a set, or any string. */
export function stringPart(set: TextSet | undefined, _builder: ValueBuilder, hint: string): Part {
  if (set === undefined || set.isAny) return sequence(text('"'), repeat(CHARACTER, 0, Infinity), text('"'));
  if (set.isEmpty()) return NOTHING;
  return { kind: "leaf", write: (writer) => writeString(writer, set, { hint }) };
}

/** Most excluded numbers, each of which divides the range. */
const MAX_EXCLUDED = 12;

/** Builds the numbers of a branch. */
export function buildNumber({ number, paths }: Branch, builder: ValueBuilder): Part {
  const { reportGap } = builder.parts;
  const excluded = [...new Set(number.excluded)].toSorted((a, b) => a - b);
  if (excluded.length > MAX_EXCLUDED) {
    reportGap({
      path: paths.enum ?? "",
      keyword: "enum",
      reason: "it has too many numbers to leave out",
      kind: "checked",
    });
  }
  const ranges = excluded.length > MAX_EXCLUDED ? [boundsOf(number)] : divided(boundsOf(number), excluded);
  return choice(ranges.map((bounds) => rangePart(bounds, paths, builder)));
}

function boundsOf(number: NumberFacts): NumberBounds {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multiples, integer } = number;
  return { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf: multiples, isInteger: integer };
}

function divided(bounds: NumberBounds, excluded: readonly number[]): NumberBounds[] {
  const { exclusiveMinimum: low = -Infinity, exclusiveMaximum: high = Infinity } = bounds;
  const ranges: NumberBounds[] = [];
  let from = low;
  for (const end of [...excluded, Infinity]) {
    const to = Math.min(high, end);
    ranges.push({ ...bounds, exclusiveMinimum: finite(from), exclusiveMaximum: finite(to) });
    from = Math.max(low, end);
  }
  return ranges;
}

function finite(number: number): number | undefined {
  return Number.isFinite(number) ? number : undefined;
}

function rangePart(
  bounds: NumberBounds,
  paths: Readonly<Record<string, string>>,
  builder: ValueBuilder,
): Part {
  if (hasNoNumber(bounds)) return NOTHING;
  return {
    kind: "leaf",
    write: (writer) => {
      const exact = writeNumber(writer, bounds);
      if (exact !== undefined) return exact;
      const path = paths.multipleOf ?? "";
      const reason = "the grammar cannot say which numbers are its multiples";
      builder.parts.reportGap({ path, keyword: "multipleOf", reason, kind: "checked" });
      const rest = writeNumber(writer, { ...bounds, multipleOf: undefined });
      return rest ?? writeNumber(writer, { isInteger: bounds.isInteger }) ?? '"0"';
    },
  };
}
