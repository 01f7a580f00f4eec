/** A schema, pattern or grammar takes more work or more room than a request may cost. */
export class SchemaTooComplexError extends Error {
  override readonly name = "SchemaTooComplexError";
  /** What is too large, as the rest of a sentence: "its grammar would be longer than 262144 characters". */
  readonly reason: string;

  constructor(reason: string) {
    super(`The schema is too complex: ${reason}.`);
    this.reason = reason;
  }
}

/** A pattern has something that no finite automaton can decide, or is not a pattern. */
export class NotRegularError extends Error {
  override readonly name = "NotRegularError";
  /** What it has, as the rest of a sentence: "it has a back-reference". */
  readonly reason: string;

  constructor(reason: string) {
    super(`The pattern cannot be followed while the answer is written: ${reason}.`);
    this.reason = reason;
  }
}

/** A grammar is not what llama.cpp reads; the message says why, as the rest of a sentence: 'it has no rule named "root"'. */
export class GrammarSyntaxError extends Error {
  override readonly name = "GrammarSyntaxError";
}

/** A grammar names tokens, which only the engine knows. */
export class GrammarTokenError extends GrammarSyntaxError {}

/** A schema that cannot be followed: nothing fits it, or it is too large. */
export class SchemaError extends Error {
  override readonly name = "SchemaError";
  /** Dotted path in the schema, "" for its root. */
  readonly path: string;
  readonly keyword: string;
  /** Why, as one sentence. */
  readonly reason: string;
  /** The tool whose parameters it is; undefined for the schema of an answer. */
  readonly tool: string | undefined;

  constructor(reason: string, at: { path: string; keyword: string; tool?: string | undefined }) {
    super(reason);
    this.reason = reason;
    this.path = at.path;
    this.keyword = at.keyword;
    this.tool = at.tool;
  }
}

/** Something that a schema says and its grammar does not. */
export interface SchemaGap {
  /** Dotted path in the schema, "" for its root. */
  readonly path: string;
  readonly keyword: string;
  /** Why, in words. */
  readonly reason: string;
  /** Whether the answer is checked for it, or nothing is. */
  readonly kind: "checked" | "ignored";
}

/** Steps of about 0.1 µs to 1 µs each: what one request may cost, about 100 ms on a slow machine. */
export const DEFAULT_WORK = 150_000;

/**
 * The work that one request may cause. Counting steps instead of time makes the same schema succeed or fail on every
 * machine alike.
 */
export class WorkBudget {
  #left: number;

  constructor(steps: number = DEFAULT_WORK) {
    this.#left = steps;
  }

  /** Steps that are left. */
  get left(): number {
    return this.#left;
  }

  /** @throws SchemaTooComplexError when more was spent than the budget has */
  spend(steps = 1): void {
    this.#left -= steps;
    if (this.#left < 0) throw new SchemaTooComplexError("following it would take too long");
  }
}
