import { SchemaTooComplexError } from "../schema-errors.ts";
import { WorkBudget } from "../work-budget.ts";
import { GbnfError, type GbnfNode, type GbnfRules, parseGbnf } from "./parse-gbnf.ts";

/** Characters: as many as a whole grammar may have. */
const MAX_ROOT_LENGTH = 256 * 1024;

/** What is still to come: a part, and what follows it. The same rests are the same object. */
interface Rest {
  readonly part: GbnfNode;
  readonly next: Rest | undefined;
}

/**
 * The grammar of what may follow a beginning: "root" has one alternative for each way in which the grammar may have come
 * so far, as llama.cpp follows it by stacks.
 * @param grammar in GBNF
 * @returns undefined if no text of the grammar begins so, or if that cannot be found out with reasonable effort
 */
export function continueGrammar(grammar: string, beginning: string): string | undefined {
  try {
    const rules = parseGbnf(grammar);
    const rests = new Follower(rules).follow(beginning);
    if (rests.size === 0) return undefined;
    const options: string[] = [];
    let room = MAX_ROOT_LENGTH;
    for (const rest of rests) {
      const option = printRest(rest);
      room -= option.length;
      if (room < 0) throw new SchemaTooComplexError("there are too many ways to go on");
      options.push(option);
    }
    const others = [...rules].map(([name, body]) => `${renamed(name)} ::= ${print(body)}\n`);
    return `root ::= ${options.join(" | ")}\n${others.join("")}`;
  } catch (error) {
    if (error instanceof GbnfError || error instanceof SchemaTooComplexError) return undefined;
    throw error;
  }
}

class Follower {
  readonly #rules: GbnfRules;
  readonly #rests = new Map<GbnfNode, Map<Rest | undefined, Rest>>();
  /** What is left of a repetition, so that it is the same object each time. */
  readonly #shorter = new Map<GbnfNode, GbnfNode>();
  readonly #budget = new WorkBudget();

  constructor(rules: GbnfRules) {
    this.#rules = rules;
  }

  /** The rests behind a text; undefined among them is the end. */
  follow(text: string): Set<Rest | undefined> {
    let rests = this.#expand([this.#rest({ kind: "rule", name: "root" }, undefined)]);
    for (const character of text) {
      const point = character.codePointAt(0) ?? 0;
      const nexts: (Rest | undefined)[] = [];
      for (const rest of rests) {
        if (rest && matches(rest.part, point)) nexts.push(rest.next);
      }
      rests = this.#expand(nexts);
    }
    return rests;
  }

  /** The rests that begin with a character or token, and the end, that these come down to. */
  #expand(rests: readonly (Rest | undefined)[]): Set<Rest | undefined> {
    const seen = new Set<Rest | undefined>(rests);
    const found = new Set<Rest | undefined>();
    // What is added while the loop runs is visited, too.
    for (const rest of seen) {
      this.#budget.spend();
      if (rest === undefined || rest.part.kind === "character" || rest.part.kind === "token") found.add(rest);
      else for (const each of this.#opened(rest.part, rest.next)) seen.add(each);
    }
    return found;
  }

  #opened(part: GbnfNode, next: Rest | undefined): readonly (Rest | undefined)[] {
    switch (part.kind) {
      case "rule": {
        const body = this.#rules.get(part.name);
        if (!body) throw new GbnfError(`it has no rule "${part.name}"`);
        return [this.#rest(body, next)];
      }
      case "sequence":
        return [part.parts.reduceRight((after, each) => this.#rest(each, after), next)];
      case "choice":
        return part.options.map((option) => this.#rest(option, next));
      case "repetition": {
        const { part: each, least, most } = part;
        if (most < 1) return [next];
        const again = this.#rest(each, most === 1 ? next : this.#rest(this.#shortened(part), next));
        return least > 0 ? [again] : [again, next];
      }
      default:
        return [this.#rest(part, next)];
    }
  }

  #shortened(part: Extract<GbnfNode, { kind: "repetition" }>): GbnfNode {
    if (part.least === 0 && part.most === Infinity) return part;
    const known = this.#shorter.get(part);
    if (known) return known;
    const shorter: GbnfNode = { ...part, least: Math.max(0, part.least - 1), most: part.most - 1 };
    this.#shorter.set(part, shorter);
    return shorter;
  }

  #rest(part: GbnfNode, next: Rest | undefined): Rest {
    let known = this.#rests.get(part);
    if (!known) this.#rests.set(part, (known = new Map()));
    let rest = known.get(next);
    if (!rest) known.set(next, (rest = { part, next }));
    return rest;
  }
}

function matches(part: GbnfNode, point: number): boolean {
  if (part.kind !== "character") return false;
  return part.ranges.some(([from, to]) => from <= point && point <= to) !== part.negated;
}

/** The new root takes the old one's name. */
function renamed(name: string): string {
  return name === "root" ? "root-of-all" : name;
}

function printRest(rest: Rest | undefined): string {
  const parts: string[] = [];
  for (let each = rest; each; each = each.next) parts.push(print(each.part));
  return parts.length > 0 ? parts.join(" ") : '""';
}

function print(part: GbnfNode): string {
  switch (part.kind) {
    case "character":
      if (part.ranges.length === 0 && part.negated) return ".";
      return `[${part.negated ? "^" : ""}${part.ranges.map(printRange).join("")}]`;
    case "token":
      return part.source;
    case "rule":
      return renamed(part.name);
    case "sequence":
      return part.parts.length === 0 ? '""' : `(${part.parts.map(print).join(" ")})`;
    case "choice":
      return `(${part.options.map(print).join(" | ")})`;
    default:
      return `${grouped(part.part)}{${part.least},${part.most === Infinity ? "" : part.most}}`;
  }
}

function grouped(part: GbnfNode): string {
  return part.kind === "repetition" ? `(${print(part)})` : print(part);
}

function printRange([from, to]: readonly [number, number]): string {
  return from === to ? printPoint(from) : `${printPoint(from)}-${printPoint(to)}`;
}

function printPoint(point: number): string {
  if (point > 0xffff) return `\\U${point.toString(16).padStart(8, "0")}`;
  const text = String.fromCharCode(point);
  return /[A-Za-z0-9]/.test(text) ? text : `\\u${point.toString(16).padStart(4, "0")}`;
}
