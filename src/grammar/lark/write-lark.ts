import { GrammarWriter } from "../gbnf/grammar-writer.ts";
import { TextSet } from "../text/text-set.ts";
import { writeString } from "../text/write-text.ts";
import type { WorkBudget } from "../schema-errors.ts";
import { type LarkNode, parseLark } from "./lark-grammar.ts";
import { isRule, START, TerminalPatterns, MAX_NESTED_RULES } from "./lark-pattern.ts";
import { UnenforceableError } from "./regular-pattern.ts";

/** Most times that llama.cpp lets a part be repeated. */
const MAX_REPEATS = 2_000;
/**
 * A Lark grammar as one of llama.cpp, whose rules may contain themselves.
 * @throws UnenforceableError when it is not understood, or cannot be read from left to right
 * @throws NotRegularError, SchemaTooComplexError
 */
export function larkToGbnf(definition: string, budget: WorkBudget): string {
  return new LarkWriter(definition, budget).grammar();
}

class LarkWriter {
  readonly #writer = new GrammarWriter();
  readonly #terminals: TerminalPatterns;
  readonly #budget: WorkBudget;
  readonly #rules = new Map<string, string>();
  readonly #written = new Map<string, string>();
  /** What may follow each terminal. */
  readonly #between: string | undefined;
  #depth = 0;

  constructor(definition: string, budget: WorkBudget) {
    this.#budget = budget;
    this.#terminals = new TerminalPatterns(parseLark(definition));
    const { between } = this.#terminals;
    this.#between = between === "" ? undefined : this.#texts(between, "ignored");
  }

  grammar(): string {
    const start = this.#ruleName(START);
    if (this.#between === undefined) return this.#writer.toString(start);
    return this.#writer.toString(this.#writer.rule("whole", `${this.#between} ${start}`));
  }

  #ruleName(name: string): string {
    const known = this.#rules.get(name);
    if (known !== undefined) return known;
    const node = this.#terminals.definition(name);
    if (this.#depth >= MAX_NESTED_RULES) throw new UnenforceableError("has rules that are nested too deeply");
    const written = this.#writer.reserve(name);
    this.#rules.set(name, written);
    this.#depth += 1;
    this.#writer.define(written, this.#body(name, node));
    this.#depth -= 1;
    return written;
  }

  /** A rule that begins with itself, `a: a "x" | "y"`, is what else it may be, followed by the rest any number of times. */
  #body(name: string, node: LarkNode): string {
    const options = node.kind === "choice" ? node.options : [node];
    const rests = options.flatMap((option) => restAfter(option, name) ?? []);
    if (rests.length === 0) return this.#write(node);
    const bases = options.filter((option) => restAfter(option, name) === undefined);
    if (bases.length === 0) throw new UnenforceableError(`is endless: ${name} always contains itself`);
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
        return `(${this.#write(node.part)})${repetition(node.least, node.most)}`;
      case "name":
        if (isRule(node.name)) return this.#ruleName(node.name);
        return this.#terminal(node, node.name);
      default:
        return this.#terminal(node, "text");
    }
  }

  #terminal(node: LarkNode, hint: string): string {
    const text = this.#texts(this.#terminals.of(node), hint);
    return this.#between === undefined ? text : `${text} ${this.#between}`;
  }

  /** The name of the rule of a pattern's texts. */
  #texts(pattern: string, hint: string): string {
    const known = this.#written.get(pattern);
    if (known !== undefined) return known;
    const texts = TextSet.pattern(`^(?:${pattern})$`, this.#budget);
    const written = writeString(this.#writer, texts, { form: "raw", hint });
    this.#written.set(pattern, written);
    return written;
  }
}

/** What follows the name that an option begins with. */
function restAfter(option: LarkNode, name: string): LarkNode | undefined {
  const parts = option.kind === "sequence" ? option.parts : [option];
  const [first, ...rest] = parts;
  if (first?.kind !== "name" || first.name !== name) return undefined;
  return { kind: "sequence", parts: rest };
}

function repetition(least: number, most: number): string {
  if (most < least) throw new UnenforceableError("has a repetition that ends before it begins");
  if (least > MAX_REPEATS || (most > MAX_REPEATS && most !== Infinity))
    throw new UnenforceableError(`has more than ${MAX_REPEATS} repetitions`);
  if (most === Infinity) return least === 0 ? "*" : least === 1 ? "+" : `{${least},}`;
  return least === 0 && most === 1 ? "?" : `{${least},${most}}`;
}
