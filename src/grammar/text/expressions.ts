import type { WorkBudget } from "../schema-errors.ts";
import {
  ALL_BUT_SURROGATES,
  ALL_CODE_POINTS,
  type CodePoints,
  intersectionOf,
  unionOf,
} from "./code-points.ts";

/**
 * Regular expression with all Boolean operations, for the set of texts that it matches completely. Equal expressions of
 * one {@link Expressions} are the same object. Within a sequence, `ahead` tests the rest of the text and `behind` the
 * text before; both match the empty text.
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
  /** Lookahead: the rest of the text matches `rest`. */
  | (Leaf<"ahead"> & { readonly rest: Expression })
  /** Lookbehind: the text up to here matches `before`, or does not. */
  | (Leaf<"behind"> & { readonly before: Expression; readonly isNegated: boolean });

interface Leaf<Kind extends string> {
  readonly kind: Kind;
  readonly id: number;
  /** Lookbehinds in this expression, inner ones first. */
  readonly behinds: readonly Expression[];
  /** True if it contains a lookahead or lookbehind. */
  readonly looks: boolean;
  /** True if it is built without `both`, `not` and lookarounds, so that it certainly matches a text. */
  readonly isPlain: boolean;
  /** True if it matches the empty text at the end of a text; undefined if that depends on the text before. */
  readonly matchesEmpty: boolean | undefined;
}

/**
 * Tests if an expression matches the empty text at the end of a text.
 * @param truthOf returns the value of a lookbehind; undefined if unknown
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

type ExpressionsKind = Expression["kind"];
type Fields = { readonly set?: CodePoints; readonly [key: string]: unknown };

const NONE: readonly Expression[] = [];

/** Creates simplified expressions, with one object per meaning as far as that is cheap to detect. */
export class Expressions {
  readonly budget: WorkBudget;
  readonly nothing: Expression;
  readonly empty: Expression;
  /** Any code point. */
  readonly anyPoint: Expression;
  /** Any text. */
  readonly anything: Expression;
  readonly #known = new Map<string, Expression>();

  constructor(budget: WorkBudget) {
    this.budget = budget;
    this.nothing = this.#make("nothing", "", {}, []);
    this.empty = this.#make("empty", "", {}, []);
    this.anyPoint = this.set(ALL_CODE_POINTS);
    this.anything = this.repeat(this.anyPoint, 0, Infinity);
  }

  set(set: CodePoints): Expression {
    if (set.length === 0) return this.nothing;
    this.budget.spend(1 + set.length / 16);
    return this.#make("set", set.join(), { set }, []);
  }

  literal(text: string): Expression {
    return this.sequence(
      Array.from(text, (character) => {
        const point = character.codePointAt(0) ?? 0;
        return this.set([point, point]);
      }),
    );
  }

  sequence(parts: readonly Expression[]): Expression {
    return parts.reduceRight((tail, head) => this.follow(head, tail), this.empty);
  }

  /** Concatenation. Only the last part of a sequence may be `both` or `not`. */
  follow(head: Expression, tail: Expression): Expression {
    this.budget.spend();
    if (head.kind === "nothing" || tail.kind === "nothing") return this.nothing;
    if (head.kind === "empty") return tail;
    if (tail.kind === "empty" && head.kind !== "ahead" && head.kind !== "behind") return head;
    if (head.kind === "sequence")
      return partsOfSequence(head).reduceRight((rest, part) => this.follow(part, rest), tail);
    if (head.kind === "ahead" && head.rest === this.anything) return tail;
    const next = tail.kind === "sequence" ? tail.head : tail;
    if (next.kind === "repeat" && !head.looks) {
      // xx* is x+, and x{2}x{3} is x{5}, also at the beginning of a sequence.
      const [min, max] = head.kind === "repeat" ? [head.min, head.max] : [1, 1];
      const body = head.kind === "repeat" ? head.body : head;
      const rest = tail.kind === "sequence" ? tail.tail : this.empty;
      if (body === next.body) return this.follow(this.repeat(body, min + next.min, max + next.max), rest);
    }
    return this.#make("sequence", `${head.id},${tail.id}`, { head, tail }, [head, tail]);
  }

  either(parts: readonly Expression[]): Expression {
    const flat = new Set<Expression>();
    let set: CodePoints = [];
    for (const part of parts) {
      this.budget.spend();
      if (part.kind === "either") for (const inner of part.parts) flat.add(inner);
      else if (part.kind !== "nothing") flat.add(part);
    }
    if (flat.has(this.anything)) return this.anything;
    for (const part of flat) {
      this.budget.spend();
      if (part.kind !== "set") continue;
      set = set.length === 0 ? part.set : unionOf(set, part.set);
      flat.delete(part);
    }
    if (set.length > 0) flat.add(this.set(set));
    const joined = this.#withSharedHeads([...flat]);
    if (joined.some((part) => part.kind === "repeat" && part.min === 1)) return this.#withEmpty(joined);
    return this.#list("either", joined, this.nothing);
  }

  /** Intersection. */
  both(parts: readonly Expression[]): Expression {
    const flat = new Set<Expression>();
    for (const part of parts) {
      this.budget.spend();
      if (part.kind === "both") for (const inner of part.parts) flat.add(inner);
      else if (part !== this.anything) flat.add(part);
    }
    if (flat.has(this.nothing)) return this.nothing;
    for (const part of flat) if (part.kind === "not" && flat.has(part.body)) return this.nothing;
    if (flat.has(this.empty)) {
      if ([...flat].some((part) => part.matchesEmpty === false)) return this.nothing;
      if ([...flat].every((part) => part.matchesEmpty === true)) return this.empty;
    }
    return this.#list("both", this.#withOneRepeat([...flat]), this.anything);
  }

  not(body: Expression): Expression {
    if (body.kind === "not") return body.body;
    if (body === this.anything) return this.nothing;
    if (body.kind === "nothing") return this.anything;
    return this.#make("not", `${body.id}`, { body }, [body]);
  }

  repeat(body: Expression, min: number, max: number): Expression {
    if (max === 0 || body.kind === "empty") return this.empty;
    if (body.kind === "nothing") return min === 0 ? this.empty : this.nothing;
    if (min === 1 && max === 1) return body;
    if (body.kind === "repeat" && !body.looks) {
      // (x{0,5})* and (x+)* are x*.
      if (body.min <= 1 && max === Infinity && min <= 1)
        return this.repeat(body.body, min * body.min, Infinity);
      if (body.min <= 1 && min <= 1 && body.max === Infinity)
        return this.repeat(body.body, min * body.min, Infinity);
      if (body.min === 0 && body.max === 1) return this.repeat(body.body, 0, max);
    }
    if (body.kind === "either" && body.parts.includes(this.empty)) {
      const others = this.either(body.parts.filter((part) => part !== this.empty));
      return this.repeat(others, 0, max);
    }
    return this.#make("repeat", `${body.id},${min},${max}`, { body, min, max }, [body]);
  }

  ahead(rest: Expression): Expression {
    if (rest === this.anything) return this.empty;
    if (rest.kind === "nothing") return this.nothing;
    return this.#make("ahead", `${rest.id}`, { rest }, [rest]);
  }

  behind(before: Expression, isNegated: boolean): Expression {
    return this.#make("behind", `${before.id},${isNegated}`, { before, isNegated }, [before]);
  }

  /** Factors out common heads of alternatives, so that words become a trie. */
  #withSharedHeads(parts: readonly Expression[]): Expression[] {
    const tails = new Map<Expression, Expression[]>();
    const others: Expression[] = [];
    for (const part of parts) {
      this.budget.spend();
      if (part.kind === "sequence" && part.head.kind !== "ahead" && part.head.kind !== "behind") {
        const known = tails.get(part.head);
        if (known) known.push(part.tail);
        else tails.set(part.head, [part.tail]);
      } else others.push(part);
    }
    for (const [at, part] of others.entries()) {
      const known = tails.get(part);
      if (!known) continue;
      known.push(this.empty);
      others[at] = this.nothing;
    }
    const joined = [...tails].map(([head, all]) =>
      this.follow(head, all.length === 1 ? (all[0] ?? this.empty) : this.either(all)),
    );
    return [...new Set([...others.filter((part) => part.kind !== "nothing"), ...joined])];
  }

  /** Joins x{1,n} and the empty text to x{0,n}. */
  #withEmpty(parts: Expression[]): Expression {
    const at = parts.findIndex((part) => part.kind === "repeat" && part.min === 1);
    const found = parts[at];
    if (found?.kind !== "repeat" || !parts.includes(this.empty))
      return this.#list("either", parts, this.nothing);
    const rest = parts.filter((part) => part !== found && part !== this.empty);
    return this.#list("either", [...rest, this.repeat(found.body, 0, found.max)], this.nothing);
  }

  /** Intersects repeated sets, such as lengths, to one. */
  #withOneRepeat(parts: readonly Expression[]): Expression[] {
    let joined: { readonly set: CodePoints; readonly min: number; readonly max: number } | undefined;
    const others: Expression[] = [];
    for (const part of parts) {
      const repeat = asRepeatedSet(part);
      if (!repeat) others.push(part);
      else if (!joined) joined = repeat;
      else {
        this.budget.spend(1 + (joined.set.length + repeat.set.length) / 8);
        const set = intersectionOf(joined.set, repeat.set);
        joined = { set, min: Math.max(joined.min, repeat.min), max: Math.min(joined.max, repeat.max) };
        if (joined.min > joined.max) return [this.nothing];
      }
    }
    return joined ? [this.repeat(this.set(joined.set), joined.min, joined.max), ...others] : others;
  }

  #list(kind: "either" | "both", parts: readonly Expression[], none: Expression): Expression {
    if (kind === "both" && parts.some((part) => part.kind === "nothing")) return this.nothing;
    const [first, second] = parts;
    if (!first) return none;
    if (!second) return first;
    const sorted = parts.toSorted((a, b) => a.id - b.id);
    this.budget.spend(sorted.length);
    return this.#make(kind, sorted.map(({ id }) => id).join(), { parts: sorted }, sorted);
  }

  #make(kind: ExpressionsKind, key: string, fields: Fields, parts: readonly Expression[]): Expression {
    const known = this.#known.get(`${kind}:${key}`);
    if (known) return known;
    this.budget.spend();
    const looks = kind === "ahead" || kind === "behind" || parts.some((part) => part.looks);
    const isSurrogate = kind === "set" && intersectionOf(fields.set ?? [], ALL_BUT_SURROGATES).length === 0;
    const isPlain =
      !isSurrogate && !looks && kind !== "both" && kind !== "not" && parts.every((part) => part.isPlain);
    const behinds = new Set(parts.flatMap((part) => part.behinds));
    // The methods above pass the fields of each kind.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const made = { kind, id: this.#known.size, looks, isPlain, ...fields } as unknown as Expression;
    if (kind === "behind") behinds.add(made);
    Object.assign(made, { behinds: behinds.size > 0 ? [...behinds] : NONE });
    Object.assign(made, { matchesEmpty: matchesEmpty(made, () => undefined) });
    this.#known.set(`${kind}:${key}`, made);
    return made;
  }
}

/** Returns the parts of a sequence, or the only part. */
export function partsOfSequence(sequence: Expression): Expression[] {
  const parts: Expression[] = [];
  let at = sequence;
  for (; at.kind === "sequence"; at = at.tail) parts.push(at.head);
  return [...parts, at];
}

function asRepeatedSet(part: Expression): { set: CodePoints; min: number; max: number } | undefined {
  if (part.kind === "set") return { set: part.set, min: 1, max: 1 };
  if (part.kind !== "repeat" || part.body.kind !== "set") return undefined;
  return { set: part.body.set, min: part.min, max: part.max };
}
