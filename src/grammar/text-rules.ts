import { NotRegularError, type SchemaGap, SchemaTooComplexError, WorkBudget } from "./schema-errors.ts";
import type { Branch } from "./terms/branch.ts";
import { TextSet } from "./text/text-set.ts";

/** More states than this make a grammar that is slow to read; the answer is checked instead. */
const MAX_STATES = 1500;
/** Longer limits beside a pattern would need a state for each character and state of the pattern. */
const MAX_COMBINED_LENGTH = 128;

/** Why a pattern has no set of texts in the grammar. */
interface NoTextSet {
  readonly reason: string;
  readonly kind: SchemaGap["kind"];
}

const TOO_LARGE: NoTextSet = { reason: "its automaton is too large for the grammar", kind: "checked" };

/** The sets of texts that the patterns, formats and names of one schema mean. */
export class TextRules {
  #budget = new WorkBudget();
  #isLeftOut = false;
  #sets = new Map<string, TextSet | NoTextSet | undefined>();
  /** What has taken too long in an earlier try. */
  readonly #tooLarge = new Set<string>();
  #current: string | undefined;
  readonly #checked = new Map<string, TextSet | NoTextSet | undefined>();

  /** Begins a try to compile the schema. */
  begin(budget: WorkBudget, isLeftOut: boolean): void {
    if (this.#current !== undefined) this.#tooLarge.add(this.#current);
    this.#current = undefined;
    this.#budget = budget;
    this.#isLeftOut = isLeftOut;
    this.#sets = new Map();
  }

  /** The pattern or format that was being worked on when a try ended early. */
  get current(): string | undefined {
    return this.#current;
  }

  pattern(source: string): TextSet | NoTextSet {
    return this.#set(`pattern ${source}`, () => TextSet.pattern(source, this.#budget)) ?? TOO_LARGE;
  }

  /** Undefined for a format that is only an annotation. */
  format(name: string): TextSet | NoTextSet | undefined {
    return this.#set(`format ${name}`, () => TextSet.format(name, this.#budget));
  }

  not(set: TextSet): TextSet {
    return set.not();
  }

  and(sets: readonly TextSet[]): TextSet {
    return sets.reduce((all, set) => all.and(set), TextSet.any(this.#budget));
  }

  or(sets: readonly TextSet[]): TextSet {
    const nothing = TextSet.any(this.#budget).not();
    return sets.reduce((some, set) => some.or(set), nothing);
  }

  listed(texts: readonly string[]): TextSet {
    return this.or(texts.map((each) => TextSet.literal(each, this.#budget)));
  }

  otherThan(texts: readonly string[]): TextSet {
    return this.listed(texts).not();
  }

  /** Whether lengths of a branch can be combined with its other sets. */
  combinesLengths({ minLength, maxLength, texts, otherThan }: Branch): boolean {
    if (texts.length === 0 && otherThan.size === 0) return true;
    const isLong = maxLength > MAX_COMBINED_LENGTH && Number.isFinite(maxLength);
    return minLength <= MAX_COMBINED_LENGTH && !isLong;
  }

  /** The texts of a branch, as far as its lengths can be combined with the rest. */
  ofBranch(branch: Branch): TextSet {
    const { minLength, maxLength, texts, otherThan } = branch;
    const sets = texts.map(({ set }) => set);
    if (otherThan.size > 0) sets.push(this.otherThan([...otherThan]));
    const isBounded = minLength > 0 || Number.isFinite(maxLength);
    if (isBounded && this.combinesLengths(branch)) {
      sets.push(TextSet.lengthBetween(minLength, maxLength, this.#budget));
    }
    return this.and(sets);
  }

  fitsPattern(text: string, source: string): boolean {
    return this.#check(text, `pattern ${source}`, (budget) => TextSet.pattern(source, budget));
  }

  fitsFormat(text: string, name: string): boolean {
    return this.#check(text, `format ${name}`, (budget) => TextSet.format(name, budget));
  }

  #set(id: string, make: () => TextSet | undefined): TextSet | NoTextSet | undefined {
    if (this.#sets.has(id)) return this.#sets.get(id);
    let set: TextSet | NoTextSet | undefined;
    this.#current = id;
    try {
      set = make();
      if (set && (this.#isLeftOut || this.#tooLarge.has(id) || set.automaton().length > MAX_STATES))
        set = TOO_LARGE;
    } catch (error) {
      if (!(error instanceof NotRegularError)) throw error;
      set = { reason: error.reason, kind: "ignored" };
    }
    this.#current = undefined;
    this.#sets.set(id, set);
    return set;
  }

  /** What cannot be decided within a budget fits. */
  #check(text: string, id: string, make: (budget: WorkBudget) => TextSet | undefined): boolean {
    for (const isFresh of [false, true]) {
      try {
        if (isFresh || !this.#checked.has(id)) this.#checked.set(id, make(new WorkBudget()));
        const set = this.#checked.get(id);
        return set === undefined || "reason" in set || set.has(text);
      } catch (error) {
        if (error instanceof NotRegularError) {
          this.#checked.set(id, { reason: error.reason, kind: "ignored" });
          return true;
        }
        // The set's own budget is spent after many answers: it begins anew.
        if (!(error instanceof SchemaTooComplexError)) throw error;
      }
    }
    return true;
  }
}
