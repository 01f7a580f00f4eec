import { gbnfRepetition } from "../gbnf/grammar-writer.ts";
import { SchemaTooComplexError, UnsupportedGrammarError, type WorkBudget } from "../schema-errors.ts";
import {
  type CodePoints,
  hasCodePoint,
  intersectionOf,
  LAST_CODE_POINT,
  rangesOf,
  UNESCAPED,
} from "./code-points.ts";
import { type Expression, type Expressions, partsOfSequence } from "./expressions.ts";
import { expressionsFor, TextSet } from "./text-set.ts";

/** Longest printed pattern, in characters; nested expressions may grow exponentially. */
const MAX_LENGTH = 32 * 1024;
/** Most ranges of a class: Unicode properties have more, which would flood the prompt. */
const MAX_RANGES = 256;

/**
 * Rewrites the pattern of a JSON schema so that llama.cpp can convert it and it matches the JSON encoding of a string. llama.cpp
 * does not encode: a class could match quotes and line breaks, which is not JSON. It also accepts any string for a pattern
 * with `\d`, without anchors or with a lazy quantifier.
 *
 * Complements (`.`, `[^…]`, `\D`) do not match characters that need an escape in JSON, which would flood the prompt.
 * @returns undefined if the pattern has no such form
 */
export function toJsonPattern(source: string, budget: WorkBudget): string | undefined {
  try {
    const { expression } = TextSet.pattern(source, budget, withoutEscapes);
    return `^${printPattern(jsonEncoded(expression, expressionsFor(budget)))}$`;
  } catch (error) {
    if (error instanceof UnsupportedGrammarError || error instanceof SchemaTooComplexError) return undefined;
    throw error;
  }
}

/** Leaves out of a complement what needs an escape in JSON. Classes of {@link printPattern} have no surrogates. */
function withoutEscapes(set: CodePoints): CodePoints {
  const isComplement = set.length > 2 && set.at(-1) === LAST_CODE_POINT && hasCodePoint(set, 0xd800);
  return isComplement ? intersectionOf(set, UNESCAPED) : set;
}

/**
 * Prints an expression as an ECMA-262 pattern without anchors, in the syntax that llama.cpp's converter supports.
 * @throws UnsupportedGrammarError if it is too large or has lookarounds, intersections or complements
 */
export function printPattern(expression: Expression): string {
  return new PatternPrinter().print(expression);
}

class PatternPrinter {
  #length = 0;

  print(part: Expression): string {
    switch (part.kind) {
      case "empty":
        return "";
      case "set":
        return this.#counted(singleCharacter(part.set) ?? classOf(part.set));
      case "sequence":
        return partsOfSequence(part)
          .map((each) => this.print(each))
          .join("");
      case "either": {
        const choices = part.parts.filter(({ kind }) => kind !== "empty").map((each) => this.print(each));
        return `(?:${choices.join("|")})${choices.length < part.parts.length ? "?" : ""}`;
      }
      case "repeat":
        return this.#repeated(part.body) + this.#counted(gbnfRepetition(part.min, part.max));
      default:
        throw new UnsupportedGrammarError("it has no form as a plain pattern");
    }
  }

  /** Prints the body of a repetition: llama.cpp applies quantifiers correctly only to classes and groups. */
  #repeated(body: Expression): string {
    if (body.kind === "set") return this.#counted(classOf(body.set));
    return body.kind === "either" ? this.print(body) : `(?:${this.print(body)})`;
  }

  #counted(text: string): string {
    this.#length += text.length;
    if (this.#length > MAX_LENGTH)
      throw new UnsupportedGrammarError("it is too large when its rules are written out");
    return text;
  }
}

function singleCharacter(set: CodePoints): string | undefined {
  const [point = 0, last] = set;
  if (set.length !== 2 || point !== last) return undefined;
  const text = String.fromCodePoint(point);
  if (/[\\^$.*+?()[\]{}|]/.test(text)) return `\\${text}`;
  return point >= 0x20 && point < 0x7f ? text : escaped(point);
}

function classOf(set: CodePoints): string {
  const ranges = rangesOf(set);
  if (ranges.length === 0 || ranges.length > MAX_RANGES)
    throw new UnsupportedGrammarError("it has a class with no or too many characters");
  const members = ranges.map(([from, to]) =>
    from === to ? classMember(from) : `${classMember(from)}-${classMember(to)}`,
  );
  return `[${members.join("")}]`;
}

function classMember(point: number): string {
  const text = String.fromCodePoint(point);
  return /[A-Za-z0-9]/.test(text) ? text : escaped(point);
}

/** Escapes a character. llama.cpp does not support `\u{…}`, so characters above U+FFFF are literal. */
function escaped(point: number): string {
  return point > 0xffff ? String.fromCodePoint(point) : `\\u${point.toString(16).padStart(4, "0")}`;
}

/** Maps an expression for texts to one for their JSON encoding. */
function jsonEncoded(
  part: Expression,
  make: Expressions,
  sets: Map<Expression, Expression> = new Map(),
): Expression {
  switch (part.kind) {
    case "set": {
      const encoded = sets.get(part) ?? encodedSet(part.set, make);
      sets.set(part, encoded);
      return encoded;
    }
    case "sequence":
      return make.sequence(partsOfSequence(part).map((each) => jsonEncoded(each, make, sets)));
    case "either":
      return make.either(part.parts.map((each) => jsonEncoded(each, make, sets)));
    case "repeat":
      return make.repeat(jsonEncoded(part.body, make, sets), part.min, part.max);
    default:
      return part;
  }
}

function encodedSet(set: CodePoints, make: Expressions): Expression {
  const plain = make.set(intersectionOf(set, UNESCAPED));
  const escapes = [...Array.from({ length: 0x20 }, (_, control) => control), 0x22, 0x5c]
    .filter((point) => hasCodePoint(set, point))
    .map((point) => make.literal(JSON.stringify(String.fromCodePoint(point)).slice(1, -1)));
  return make.either([plain, ...escapes]);
}
