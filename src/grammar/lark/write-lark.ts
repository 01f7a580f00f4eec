import { gbnfRepetition, GrammarWriter } from "../gbnf/grammar-writer.ts";
import type { Expression } from "../text/expressions.ts";
import { expressionsFor, TextSet } from "../text/text-set.ts";
import { writeString } from "../text/write-text.ts";
import { UnsupportedGrammarError, type WorkBudget } from "../schema-errors.ts";
import { type LarkNode, parseLark } from "./lark-grammar.ts";
import { isRule, LarkExpressions, MAX_NESTED_RULES, START_RULE } from "./lark-expression.ts";
import { checkBounds } from "../text/parse-regex.ts";

/** Largest bound of a repetition in llama.cpp. */
const MAX_REPEATS = 2_000;

/**
 * Compiles a Lark grammar to GBNF; rules may be recursive.
 * @throws UnsupportedGrammarError for unsupported syntax or an endless rule, or SchemaTooComplexError
 */
export function larkToGbnf(definition: string, budget: WorkBudget): string {
  return new LarkWriter(definition, budget).grammar();
}

class LarkWriter {
  readonly #writer = new GrammarWriter();
  readonly #terminals: LarkExpressions;
  readonly #budget: WorkBudget;
  readonly #rules = new Map<string, string>();
  readonly #written = new Map<Expression, string>();
  /** Term of ignored text, which may follow each terminal. */
  readonly #ignored: string | undefined;
  #depth = 0;

  constructor(definition: string, budget: WorkBudget) {
    this.#budget = budget;
    this.#terminals = new LarkExpressions(parseLark(definition), expressionsFor(budget));
    const { ignored } = this.#terminals;
    this.#ignored = ignored.kind === "empty" ? undefined : this.#texts(ignored, "ignored");
  }

  grammar(): string {
    const start = this.#ruleName(START_RULE);
    if (this.#ignored === undefined) return this.#writer.toString(start);
    return this.#writer.toString(this.#writer.rule("whole", `${this.#ignored} ${start}`));
  }

  #ruleName(name: string): string {
    const known = this.#rules.get(name);
    if (known !== undefined) return known;
    const node = this.#terminals.definition(name);
    if (this.#depth >= MAX_NESTED_RULES)
      throw new UnsupportedGrammarError("it has rules that are nested too deeply");
    const written = this.#writer.reserve(name);
    this.#rules.set(name, written);
    this.#depth += 1;
    this.#writer.define(written, this.#body(name, node));
    this.#depth -= 1;
    return written;
  }

  /** Removes direct left recursion: `a: a "x" | "y"` becomes "y" followed by any number of "x". */
  #body(name: string, node: LarkNode): string {
    const options = node.kind === "choice" ? node.options : [node];
    const rests = options.flatMap((option) => restAfter(option, name) ?? []);
    if (rests.length === 0) return this.#write(node);
    const bases = options.filter((option) => restAfter(option, name) === undefined);
    if (bases.length === 0)
      throw new UnsupportedGrammarError(`it is endless: ${name} always contains itself`);
    return `(${this.#choices(bases)}) (${this.#choices(rests)})*`;
  }

  #choices(options: readonly LarkNode[]): string {
    return options.map((option) => this.#write(option)).join(" | ");
  }

  #write(node: LarkNode): string {
    this.#budget.spend();
    switch (node.kind) {
      case "sequence":
        return node.parts.length === 0 ? '""' : node.parts.map((part) => this.#write(part)).join(" ");
      case "choice":
        return `(${this.#choices(node.options)})`;
      case "repeat":
        return `(${this.#write(node.part)})${repetition(node.min, node.max)}`;
      case "name":
        if (isRule(node.name)) return this.#ruleName(node.name);
        return this.#terminal(node, node.name);
      default:
        return this.#terminal(node, "text");
    }
  }

  #terminal(node: LarkNode, hint: string): string {
    const text = this.#texts(this.#terminals.of(node), hint);
    return this.#ignored === undefined ? text : `${text} ${this.#ignored}`;
  }

  /** Writes a rule for an expression; returns its name. */
  #texts(expression: Expression, hint: string): string {
    const known = this.#written.get(expression);
    if (known !== undefined) return known;
    const written = writeString(this.#writer, TextSet.of(expression, this.#budget), { form: "raw", hint });
    this.#written.set(expression, written);
    return written;
  }
}

/** Returns the rest of an option that begins with a name; undefined if it does not. */
function restAfter(option: LarkNode, name: string): LarkNode | undefined {
  const parts = option.kind === "sequence" ? option.parts : [option];
  const [first, ...rest] = parts;
  if (first?.kind !== "name" || first.name !== name) return undefined;
  return { kind: "sequence", parts: rest };
}

function repetition(min: number, max: number): string {
  checkBounds(min, max);
  if (min > MAX_REPEATS || (max > MAX_REPEATS && max !== Infinity))
    throw new UnsupportedGrammarError(`it has more than ${MAX_REPEATS} repetitions`);
  return gbnfRepetition(min, max);
}
