import { gbnfLiteral, gbnfRepetition, type GrammarWriter } from "../gbnf/grammar-writer.ts";
import type { WorkBudget } from "../schema-errors.ts";
import type { Part, Rule } from "./part.ts";

/** Most characters of a rule's body that is written inline. */
const MAX_INLINE = 24;

/** Writes the rules that a part reaches, without unsatisfiable parts. */
export class PartWriter {
  readonly #writer: GrammarWriter;
  readonly #satisfiable = new Set<Rule>();
  readonly #written = new Map<Rule, string>();
  /** Rules in progress, with their names if they are recursive. */
  readonly #open = new Map<Rule, string | undefined>();

  constructor(writer: GrammarWriter) {
    this.#writer = writer;
  }

  /**
   * True if a finite text matches the part. Has to be called before a part with rules is written.
   * @throws SchemaTooComplexError
   */
  isSatisfiable(part: Part, budget: WorkBudget): boolean {
    this.#findSatisfiable(part, budget);
    return this.#isSatisfiable(part);
  }

  /** Finds the rules that match a finite text. */
  #findSatisfiable(root: Part, budget: WorkBudget): void {
    const rules = new Set<Rule>();
    const open: Part[] = [root];
    for (let part = open.pop(); part; part = open.pop()) {
      budget.spend();
      if (part.kind === "rule") {
        if (rules.has(part.rule)) continue;
        rules.add(part.rule);
        open.push(part.rule.body);
      } else if (part.kind === "repeat") open.push(part.part);
      else if (part.kind === "sequence" || part.kind === "choice") open.push(...part.parts);
    }
    // Rules refer to later and earlier ones, so alternating directions resolves long chains in few passes.
    let order = [...rules];
    for (let changed = true; changed;) {
      changed = false;
      order = order.toReversed();
      for (const rule of order) {
        budget.spend();
        if (this.#satisfiable.has(rule) || !this.#isSatisfiable(rule.body)) continue;
        this.#satisfiable.add(rule);
        changed = true;
      }
    }
  }

  #isSatisfiable(part: Part): boolean {
    switch (part.kind) {
      case "text":
      case "leaf":
        return true;
      case "rule":
        return this.#satisfiable.has(part.rule);
      case "repeat":
        return part.min === 0 || this.#isSatisfiable(part.part);
      case "sequence":
        return part.parts.every((each) => this.#isSatisfiable(each));
      default:
        return part.parts.some((each) => this.#isSatisfiable(each));
    }
  }

  /** Writes a satisfiable part as a term or a sequence of terms. */
  write(part: Part): string {
    switch (part.kind) {
      case "text":
        return gbnfLiteral(part.text);
      case "leaf":
        return part.write(this.#writer);
      case "rule":
        return this.#rule(part.rule);
      case "repeat":
        return this.#isSatisfiable(part.part) ? repeated(this.write(part.part), part.min, part.max) : '""';
      case "sequence":
        return joined(part.parts.map((each) => this.write(each)));
      default: {
        const fitting = part.parts.filter((each) => this.#isSatisfiable(each));
        const terms = [...new Set(fitting.map((each) => this.write(each)))];
        return terms.length === 1 ? terms[0]! : `(${terms.join(" | ")})`;
      }
    }
  }

  #rule(rule: Rule): string {
    const known = this.#written.get(rule);
    if (known !== undefined) return known;
    if (this.#open.has(rule)) {
      const name = this.#open.get(rule) ?? this.#writer.reserve(rule.hint);
      this.#open.set(rule, name);
      return name;
    }
    this.#open.set(rule, undefined);
    const body = this.write(rule.body);
    const reserved = this.#open.get(rule);
    this.#open.delete(rule);
    if (reserved !== undefined) this.#writer.define(reserved, body);
    const term = reserved ?? (body.length <= MAX_INLINE ? body : this.#writer.rule(rule.hint, body));
    this.#written.set(rule, term);
    return term;
  }
}

/** Joins terms, and merges adjacent literals. */
function joined(terms: readonly string[]): string {
  const out: string[] = [];
  for (const term of terms) {
    if (term === '""') continue;
    const last = out.at(-1);
    if (last !== undefined && LITERAL.test(last) && LITERAL.test(term))
      out[out.length - 1] = last.slice(0, -1) + term.slice(1);
    else out.push(term);
  }
  return out.length > 0 ? out.join(" ") : '""';
}

const LITERAL = /^"(?:[^"\\]|\\.)*"$/s;
/** Matches names, literals and classes, which need no parentheses to be repeated. */
const SINGLE = /^(?:[a-zA-Z][a-zA-Z0-9-]*|"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\])$/s;

/** Longest repetition; longer ones are nested, because llama.cpp makes a rule for each count. */
const MAX_REPEAT = 100;

function repeated(term: string, min: number, max: number): string {
  const single = SINGLE.test(term) ? term : `(${term})`;
  const isShort = Number.isFinite(max) ? max <= MAX_REPEAT : min <= MAX_REPEAT;
  if (isShort) return `${single}${gbnfRepetition(min, max)}`;
  if (max === Infinity) return `${exactly(single, min)} ${single}*`;
  return [...(min > 0 ? [exactly(single, min)] : []), ...(max > min ? [upTo(single, max - min)] : [])].join(
    " ",
  );
}

function exactly(term: string, count: number): string {
  const [groups, rest] = [Math.floor(count / MAX_REPEAT), count % MAX_REPEAT];
  if (groups === 0) return `${term}{${rest}}`;
  return `${exactly(`(${term}{${MAX_REPEAT}})`, groups)}${rest > 0 ? ` ${term}{${rest}}` : ""}`;
}

function upTo(term: string, count: number): string {
  const [groups, rest] = [Math.floor(count / MAX_REPEAT), count % MAX_REPEAT];
  if (groups === 0) return `${term}{0,${rest}}`;
  const group = `(${term}{${MAX_REPEAT}})`;
  const all = `${exactly(group, groups)}${rest > 0 ? ` ${term}{0,${rest}}` : ""}`;
  const fewer = `${groups > 1 ? `${upTo(group, groups - 1)} ` : ""}${term}{0,${MAX_REPEAT - 1}}`;
  return `(${all} | ${fewer})`;
}
