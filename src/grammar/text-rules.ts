import { UnsupportedGrammarError, SchemaTooComplexError, WorkBudget } from "./schema-errors.ts";
import type { Branch } from "./terms/branch.ts";
import { checkPatternLength } from "./text/parse-pattern.ts";
import { TextSet } from "./text/text-set.ts";

/** Most states of an automaton in a grammar; for larger ones the answer is checked instead. */
const MAX_STATES = 1500;
/** Longest limit that is combined with a pattern, as that needs a state for each length and state of the pattern. */
const MAX_COMBINED_LENGTH = 128;

/** Pattern or format that is not in the grammar. */
export interface UnusableSet {
  /** Reason why it is ignored; undefined: it is too large for the grammar, and left to the check. */
  readonly reason: string | undefined;
}

const TOO_LARGE: UnusableSet = { reason: undefined };

/** Sets of texts for the patterns, formats and names of one schema. */
export class TextRules {
  #budget = new WorkBudget();
  #isLeftOut = false;
  #sets = new Map<string, TextSet | UnusableSet | undefined>();
  /** Patterns and formats that took too long in an earlier attempt. */
  readonly #tooLarge = new Set<string>();
  #current: string | undefined;
  readonly #checked = new Map<string, TextSet | UnusableSet | undefined>();

  /** Begins an attempt to compile the schema. */
  begin(budget: WorkBudget, isLeftOut: boolean): void {
    if (this.#current !== undefined) this.#tooLarge.add(this.#current);
    this.#current = undefined;
    this.#budget = budget;
    this.#isLeftOut = isLeftOut;
    this.#sets = new Map();
  }

  /** Pattern or format that was being compiled when an attempt failed. */
  get current(): string | undefined {
    return this.#current;
  }

  pattern(source: string): TextSet | UnusableSet {
    return this.#set(`pattern ${source}`, () => patternSet(source, this.#budget)) ?? TOO_LARGE;
  }

  /** Returns the texts of a format; undefined if the format is only an annotation. */
  format(name: string): TextSet | UnusableSet | undefined {
    return this.#set(`format ${name}`, () => TextSet.format(name, this.#budget));
  }

  listed(texts: readonly string[]): TextSet {
    return TextSet.oneOf(texts, this.#budget);
  }

  otherThan(texts: readonly string[]): TextSet {
    return this.listed(texts).not();
  }

  /** True if the length limits of a branch can be combined with its patterns. */
  combinesLengths({ minLength, maxLength, texts, otherThan }: Branch): boolean {
    if (texts.length === 0 && otherThan.size === 0) return true;
    const isLong = maxLength > MAX_COMBINED_LENGTH && Number.isFinite(maxLength);
    return minLength <= MAX_COMBINED_LENGTH && !isLong;
  }

  /** Returns the texts of a branch, with its length limits if they can be combined. */
  ofBranch(branch: Branch): TextSet {
    const { minLength, maxLength, texts, otherThan } = branch;
    const sets = texts.map(({ set }) => set);
    if (otherThan.size > 0) sets.push(this.otherThan([...otherThan]));
    const isBounded = minLength > 0 || Number.isFinite(maxLength);
    if (isBounded && this.combinesLengths(branch)) {
      sets.push(TextSet.lengthBetween(minLength, maxLength, this.#budget));
    }
    return sets.reduce((all, set) => all.and(set), TextSet.any(this.#budget));
  }

  fitsPattern(text: string, source: string): boolean {
    return this.#check(text, `pattern ${source}`, (budget) => patternSet(source, budget));
  }

  fitsFormat(text: string, name: string): boolean {
    return this.#check(text, `format ${name}`, (budget) => TextSet.format(name, budget));
  }

  #set(id: string, make: () => TextSet | undefined): TextSet | UnusableSet | undefined {
    if (this.#sets.has(id)) return this.#sets.get(id);
    let set: TextSet | UnusableSet | undefined;
    this.#current = id;
    try {
      set = make();
      if (set && (this.#isLeftOut || this.#tooLarge.has(id) || set.automaton().length > MAX_STATES))
        set = TOO_LARGE;
    } catch (error) {
      if (!(error instanceof UnsupportedGrammarError)) throw error;
      set = { reason: error.message };
    }
    this.#current = undefined;
    this.#sets.set(id, set);
    return set;
  }

  /** Tests a text; true if the budget does not suffice to decide. */
  #check(text: string, id: string, make: (budget: WorkBudget) => TextSet | undefined): boolean {
    for (const isFresh of [false, true]) {
      try {
        if (isFresh || !this.#checked.has(id)) this.#checked.set(id, make(new WorkBudget()));
        const set = this.#checked.get(id);
        return set === undefined || "reason" in set || set.has(text);
      } catch (error) {
        if (error instanceof UnsupportedGrammarError) {
          this.#checked.set(id, { reason: error.message });
          return true;
        }
        // The set's budget is exhausted after many answers, so it is built again.
        if (!(error instanceof SchemaTooComplexError)) throw error;
      }
    }
    return true;
  }
}

function patternSet(source: string, budget: WorkBudget): TextSet {
  checkPatternLength(source);
  return TextSet.pattern(source, budget);
}
