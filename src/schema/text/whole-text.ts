import type { Expression } from "./expression.ts";
import type { Expressions } from "./expressions.ts";

type Place = "start" | "inside" | "unknown";

/** The texts that have a pattern somewhere. */
export function textsWith(pattern: Expression, make: Expressions): Expression {
  const { anything } = make;
  if (pattern.behinds.length === 0) return wholeText(make.sequence([anything, pattern, anything]), make);
  const later = resolved(pattern, "inside", make);
  const atStart = make.follow(resolved(pattern, "start", make), anything);
  const further = make.sequence([make.anyPoint, anything, later, anything]);
  return make.either([wholeText(atStart, make), wholeText(further, make)]);
}

/** Decides what can be decided about looking behind. */
function resolved(expression: Expression, place: Place, make: Expressions): Expression {
  if (expression.behinds.length === 0 || place === "unknown") return expression;
  switch (expression.kind) {
    case "behind": {
      if (place === "inside" && expression.before !== make.empty) return expression;
      const isTrue = place === "start" ? expression.before.matchesEmpty : false;
      if (isTrue === undefined) return expression;
      return isTrue === expression.isNegated ? make.nothing : make.empty;
    }
    case "sequence": {
      const parts: Expression[] = [];
      let [at, here]: [Expression, Place] = [expression, place];
      for (; at.kind === "sequence"; at = at.tail) {
        const part = resolved(at.head, here, make);
        parts.push(part);
        here = placeAfter(part, here);
      }
      return make.sequence([...parts, resolved(at, here, make)]);
    }
    case "either":
      return make.either(expression.parts.map((part) => resolved(part, place, make)));
    case "repeat":
      if (place !== "inside") return expression;
      return make.repeat(resolved(expression.body, place, make), expression.min, expression.max);
    case "not":
      return make.not(resolved(expression.body, place, make));
    case "ahead":
      return make.ahead(resolved(expression.rest, place, make));
    default:
      return expression;
  }
}

function placeAfter(part: Expression, place: Place): Place {
  if (place === "inside" || takesSomething(part)) return "inside";
  const isWithoutLength = part.kind === "empty" || part.kind === "ahead" || part.kind === "behind";
  return isWithoutLength ? place : "unknown";
}

function takesSomething(part: Expression): boolean {
  if (part.kind === "sequence") return takesSomething(part.head) || takesSomething(part.tail);
  if (part.kind === "either") return part.parts.every(takesSomething);
  if (part.kind === "repeat") return part.min > 0 && takesSomething(part.body);
  return part.kind === "set";
}

/**
 * Turns looking ahead into intersections, for an expression that stands for whole texts: `(?=a)b` are the texts that
 * begin with an a and are a b. Inside of repetitions it stays.
 */
function wholeText(expression: Expression, make: Expressions): Expression {
  if (!expression.looks) return expression;
  make.budget.spend();
  switch (expression.kind) {
    case "ahead":
      return make.both([wholeText(expression.rest, make), make.empty]);
    case "either":
      return make.either(expression.parts.map((part) => wholeText(part, make)));
    case "not":
      return make.not(wholeText(expression.body, make));
    case "both":
      return make.both(expression.parts.map((part) => wholeText(part, make)));
    case "sequence": {
      const heads: Expression[] = [];
      let at: Expression = expression;
      for (; at.kind === "sequence"; at = at.tail) heads.push(at.head);
      return heads.reduceRight((tail, head) => wholeSequence(head, tail, make), wholeText(at, make));
    }
    default:
      return expression;
  }
}

function wholeSequence(head: Expression, tail: Expression, make: Expressions): Expression {
  make.budget.spend();
  if (!head.looks) return make.follow(head, tail);
  if (head.kind === "ahead") return make.both([wholeText(head.rest, make), tail]);
  if (head.kind === "either") return make.either(head.parts.map((part) => wholeSequence(part, tail, make)));
  if (head.kind === "sequence") return wholeSequence(head.head, wholeSequence(head.tail, tail, make), make);
  return make.follow(head, tail);
}
