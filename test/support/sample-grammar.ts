import {
  type Grammar,
  type GrammarChoices,
  type GrammarPart,
  parseGbnf,
} from "../../src/grammar/gbnf/parse-gbnf.ts";
import { rangesOf } from "../../src/grammar/text/code-points.ts";
import { randomNumbers } from "./random-numbers.ts";

/** After so many characters, a sample takes the shortest way to its end. */
const SOFT_LENGTH = 60;
/** Repetitions beyond the least one, at most. */
const MAX_REPEATS = 12;

/**
 * Writes random complete texts of a grammar: with the ends of ranges, the least and the most repetitions, and characters
 * that are rare, which is where a grammar goes wrong.
 */
export function sampleGrammar(source: string, count: number, seed = 1): string[] {
  const sampler = new Sampler(parseGbnf(source), randomNumbers(seed));
  return Array.from({ length: count }, () => sampler.sample());
}

class Sampler {
  readonly #grammar: Grammar;
  readonly #random: () => number;
  /** Least number of characters and rules to the end of each rule. */
  readonly #costs = new Map<string, number>();
  #softLength = 0;

  constructor(grammar: Grammar, random: () => number) {
    this.#grammar = grammar;
    this.#random = random;
    for (let isChanged = true; isChanged;) {
      isChanged = false;
      for (const [name, choices] of grammar.rules) {
        const cost = this.#costOfChoices(choices) + 1;
        if (cost >= (this.#costs.get(name) ?? Infinity)) continue;
        this.#costs.set(name, cost);
        isChanged = true;
      }
    }
    if (!this.#costs.has("root")) throw new Error("The grammar has no text");
  }

  sample(): string {
    this.#softLength = this.#random() < 0.3 ? 0 : this.#random() * SOFT_LENGTH;
    let text = "";
    const todo: GrammarPart[] = [this.#grammar.reference("root")];
    for (let part = todo.pop(); part; part = todo.pop()) {
      if (part.kind === "set") text += this.#character(part);
      else todo.push(...this.#opened(part, text.length > this.#softLength).toReversed());
    }
    return text;
  }

  #opened(part: GrammarPart, isLong: boolean): readonly GrammarPart[] {
    if (part.kind === "set") return [part];
    if (part.kind === "repeat") {
      const most = Math.min(part.max, part.min + MAX_REPEATS);
      const extra = isLong
        ? 0
        : this.#pick([0, most - part.min, Math.floor(this.#random() * (most - part.min + 1))]);
      return Array.from({ length: part.min + extra }, () => part.part);
    }
    const choices = part.kind === "group" ? part.choices : (this.#grammar.rules.get(part.name) ?? []);
    const costs = choices.map((parts) => this.#costOf(parts));
    const least = Math.min(...costs);
    const possible = choices.filter((_, at) => (isLong ? costs[at] === least : costs[at] !== Infinity));
    return this.#pick(possible);
  }

  #character(part: GrammarPart & { kind: "set" }): string {
    const [first, last] = this.#pick(rangesOf(part.set));
    const point = this.#pick([first, last, first + Math.floor(this.#random() * (last - first + 1))]);
    return String.fromCodePoint(point >= 0xd800 && point <= 0xdfff ? first : point);
  }

  #pick<Item>(items: readonly Item[]): Item {
    const item = items[Math.floor(this.#random() * items.length)];
    if (item === undefined) throw new Error("There is nothing to choose from");
    return item;
  }

  #costOfChoices(choices: GrammarChoices): number {
    return Math.min(...choices.map((parts) => this.#costOf(parts)));
  }

  #costOf(parts: readonly GrammarPart[]): number {
    return parts.reduce((sum, part) => sum + this.#costOfPart(part), 0);
  }

  #costOfPart(part: GrammarPart): number {
    switch (part.kind) {
      case "set":
        return part.set.length > 0 ? 1 : Infinity;
      case "rule":
        return this.#costs.get(part.name) ?? Infinity;
      case "group":
        return this.#costOfChoices(part.choices);
      default:
        return part.min === 0 ? 0 : part.min * this.#costOfPart(part.part);
    }
  }
}
