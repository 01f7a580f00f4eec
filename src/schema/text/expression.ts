import type { CodePoints } from "./code-points.ts";

/**
 * A regular expression with all Boolean operations. Equal expressions of one {@link Expressions} are the same object.
 *
 * Each stands for the set of texts that it matches as a whole. Inside of a sequence it may also look at what surrounds
 * it: `ahead` at the rest of the text, `behind` at the part before it. Those match the empty text.
 */
export type Expression =
  | Leaf<"nothing">
  | Leaf<"empty">
  | (Leaf<"set"> & { readonly set: CodePoints })
  | (Leaf<"sequence"> & { readonly head: Expression; readonly tail: Expression })
  | (Leaf<"either"> & { readonly parts: readonly Expression[] })
  | (Leaf<"both"> & { readonly parts: readonly Expression[] })
  | (Leaf<"not"> & { readonly body: Expression })
  | (Leaf<"repeat"> & { readonly body: Expression; readonly min: number; readonly max: number })
  /** The rest of the text is one of `rest`. */
  | (Leaf<"ahead"> & { readonly rest: Expression })
  /** The text up to here is one of `before`, or none of them. */
  | (Leaf<"behind"> & { readonly before: Expression; readonly isNegated: boolean });

interface Leaf<Kind extends string> {
  readonly kind: Kind;
  readonly id: number;
  /** The expressions that look behind, in this one and within each other: what is inside comes first. */
  readonly behinds: readonly Expression[];
  /** True when it looks ahead or behind somewhere. */
  readonly looks: boolean;
  /** True when it matches something for certain: it is built without `both`, `not` and looking around. */
  readonly isPlain: boolean;
  /** Whether it matches the empty text, at the end of a text; undefined where that depends on what came before. */
  readonly matchesEmpty: boolean | undefined;
}

/**
 * Whether an expression matches the empty text, at the end of a text.
 * @param truthOf whether the text so far is what an expression looks behind for; undefined when it is not known
 */
export function matchesEmpty(
  expression: Expression,
  truthOf: (behind: Expression) => boolean | undefined,
): boolean | undefined {
  if (expression.matchesEmpty !== undefined) return expression.matchesEmpty;
  const inner = (part: Expression): boolean | undefined => matchesEmpty(part, truthOf);
  switch (expression.kind) {
    case "nothing":
    case "set":
      return false;
    case "empty":
      return true;
    case "sequence":
      return every([inner(expression.head), inner(expression.tail)]);
    case "both":
      return every(expression.parts.map(inner));
    case "either":
      return negated(every(expression.parts.map((part) => negated(inner(part)))));
    case "not":
      return negated(inner(expression.body));
    case "repeat":
      return expression.min === 0 || inner(expression.body);
    case "ahead":
      return inner(expression.rest);
    default:
      return truthOf(expression);
  }
}

const negated = (truth: boolean | undefined): boolean | undefined =>
  truth === undefined ? undefined : !truth;

function every(truths: readonly (boolean | undefined)[]): boolean | undefined {
  if (truths.includes(false)) return false;
  return truths.includes(undefined) ? undefined : true;
}
