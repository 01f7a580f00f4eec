import { intersectionOf } from "./code-points.ts";
import type { Expression } from "./expression.ts";

/** Most alternatives that are compared with each other. */
const MAX_COMPARED = 64;

interface Ends {
  readonly canBeEmpty: boolean;
  readonly first: readonly Expression[];
}

/**
 * True when the next character always says which part of the expression it belongs to: the expression is deterministic
 * in the sense of Brüggemann-Klein and Wood. The parts of repetitions count as one.
 */
export function isUnambiguous(root: Expression): boolean {
  try {
    endsOf(root);
    return true;
  } catch (error) {
    if (error === AMBIGUOUS) return false;
    throw error;
  }
}

const AMBIGUOUS = new Error("ambiguous");

const knownEnds = new WeakMap<Expression, Ends>();
const knownContinuations = new WeakMap<Expression, readonly Expression[]>();

/** Groups within groups are asked for again and again. */
function endsOf(part: Expression): Ends {
  const known = knownEnds.get(part) ?? findEnds(part);
  knownEnds.set(part, known);
  return known;
}

function findEnds(part: Expression): Ends {
  switch (part.kind) {
    case "set":
      return { canBeEmpty: false, first: [part] };
    case "either": {
      const ends = part.parts.map(endsOf);
      const first = ends.flatMap((end) => end.first);
      checkDisjoint(first);
      return { canBeEmpty: ends.some((end) => end.canBeEmpty), first };
    }
    case "repeat": {
      const body = endsOf(part.body);
      // Where a body can be empty, or can go on itself as it can be repeated, its turns cannot be counted.
      if (part.max > 1 && (body.canBeEmpty || canGoOn(part.body, body.first))) throw AMBIGUOUS;
      return { ...body, canBeEmpty: part.min === 0 };
    }
    case "sequence":
      return endsOfSequence(part);
    default:
      return { canBeEmpty: true, first: [] };
  }
}

function endsOfSequence(sequence: Expression): Ends {
  let after: readonly Expression[] = [];
  let canBeEmpty = true;
  for (const part of sequenceParts(sequence).toReversed()) {
    const ends = endsOf(part);
    if (canGoOn(part, after)) throw AMBIGUOUS;
    if (ends.canBeEmpty) checkDisjoint([...ends.first, ...after]);
    canBeEmpty &&= ends.canBeEmpty;
    after = ends.canBeEmpty ? [...ends.first, ...after] : ends.first;
  }
  return { canBeEmpty, first: after };
}

/** True when a part that may end could go on instead with a character that may also begin what follows. */
function canGoOn(part: Expression, next: readonly Expression[]): boolean {
  if (next.length > MAX_COMPARED) throw AMBIGUOUS;
  return continuationsOf(part).some((a) => next.some((b) => overlap(a, b)));
}

/** What may follow within a part after it could have ended. */
function continuationsOf(part: Expression): readonly Expression[] {
  const known = knownContinuations.get(part) ?? findContinuations(part);
  if (known.length > MAX_COMPARED) throw AMBIGUOUS;
  knownContinuations.set(part, known);
  return known;
}

function findContinuations(part: Expression): readonly Expression[] {
  switch (part.kind) {
    case "either":
      return part.parts.flatMap(continuationsOf);
    case "repeat": {
      const again = part.max > 1 && part.min !== part.max ? endsOf(part.body).first : [];
      return [...again, ...continuationsOf(part.body)];
    }
    case "sequence": {
      const found: Expression[] = [];
      for (const each of sequenceParts(part).toReversed()) {
        const ends = endsOf(each);
        found.push(...continuationsOf(each));
        if (!ends.canBeEmpty) break;
        found.push(...ends.first);
      }
      return found;
    }
    default:
      return [];
  }
}

const overlap = (a: Expression, b: Expression): boolean =>
  a.kind === "set" && b.kind === "set" && intersectionOf(a.set, b.set).length > 0;

function checkDisjoint(sets: readonly Expression[]): void {
  if (sets.length > MAX_COMPARED) throw AMBIGUOUS;
  for (const [at, a] of sets.entries())
    for (const b of sets.slice(at + 1)) if (overlap(a, b)) throw AMBIGUOUS;
}

/** The parts of a sequence, or the only part. */
export function sequenceParts(sequence: Expression): Expression[] {
  const parts: Expression[] = [];
  let at = sequence;
  for (; at.kind === "sequence"; at = at.tail) parts.push(at.head);
  return [...parts, at];
}
