import type { Branch } from "../terms/branch.ts";
import { ALL_BUT_SURROGATES } from "../text/code-points.ts";
import type { TextSet } from "../text/text-set.ts";
import { writeCharacter } from "../text/write-character.ts";
import { writeString } from "../text/write-string.ts";
import type { ValueBuilder } from "./build-value.ts";
import { NOTHING, type Part, repeat, sequence, text } from "./part.ts";

/** One character of a string, escaped where it has to be. */
const CHARACTER: Part = {
  kind: "leaf",
  write: (writer) => writeCharacter(writer, ALL_BUT_SURROGATES, "json"),
};

/** The strings of a branch. */
export function buildString(branch: Branch, builder: ValueBuilder, hint: string): Part {
  const { texts, gap } = builder.parts;
  const { minLength, maxLength } = branch;
  if (branch.texts.length === 0 && branch.otherThan.size === 0) {
    return sequence(text('"'), repeat(CHARACTER, minLength, maxLength), text('"'));
  }
  if (!texts.combinesLengths(branch)) {
    for (const keyword of ["minLength", "maxLength"] as const) {
      if (keyword === "minLength" ? minLength === 0 : !Number.isFinite(maxLength)) continue;
      const reason = "so long a limit is not combined with other rules for the text";
      gap({ path: branch.pathOf(keyword), keyword, reason, kind: "checked" });
    }
  }
  return textLeaf(texts.ofBranch(branch), builder, hint);
}

/** A string of a set, any string without one. */
export function textLeaf(set: TextSet | undefined, _builder: ValueBuilder, hint: string): Part {
  if (set === undefined || set.isAny) return sequence(text('"'), repeat(CHARACTER, 0, Infinity), text('"'));
  if (set.isEmpty()) return NOTHING;
  return { kind: "leaf", write: (writer) => writeString(writer, set, { hint }) };
}
