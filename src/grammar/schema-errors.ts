/** Error for a schema or grammar that is too large for one request, such as "its grammar would be longer than 262144 characters". */
export class SchemaTooComplexError extends Error {
  override readonly name = "SchemaTooComplexError";
}

/** Error for a pattern or grammar that is invalid or has no form in GBNF, such as "it has a back-reference". */
export class UnsupportedGrammarError extends Error {
  override readonly name = "UnsupportedGrammarError";
}

/** Error for a GBNF grammar that llama.cpp could not parse, such as 'it has no rule named "root"'. */
export class GrammarSyntaxError extends UnsupportedGrammarError {}

/** Error for a grammar that names tokens, which only the engine knows. */
export class GrammarTokenError extends GrammarSyntaxError {}

/** Error for a schema that no value fits, or that is too large. */
export class SchemaError extends Error {
  override readonly name = "SchemaError";
  /** Dotted path in the schema, "" for its root. */
  readonly path: string;
  readonly keyword: string;
  /** Reason as one sentence. */
  readonly reason: string;
  /** Tool whose parameters the schema describes; undefined for the schema of an answer. */
  readonly tool: string | undefined;

  constructor(reason: string, at: { path: string; keyword: string; tool?: string | undefined }) {
    super(reason);
    this.reason = reason;
    this.path = at.path;
    this.keyword = at.keyword;
    this.tool = at.tool;
  }
}

/** Keyword of a schema that has no effect: neither a grammar nor the check of an answer applies it. */
export interface IgnoredKeyword {
  /** Dotted path in the schema, "" for its root. */
  readonly path: string;
  readonly keyword: string;
  /** Reason in words. */
  readonly reason: string;
}

/** Steps that one request may use, of 0.1 µs to 1 µs each: about 100 ms on a slow machine. */
export const DEFAULT_STEPS = 150_000;

/**
 * Budget of steps for compiling a grammar. Steps are counted instead of time, so that a schema succeeds or fails on all
 * machines alike.
 */
export class WorkBudget {
  #left: number;

  constructor(steps: number = DEFAULT_STEPS) {
    this.#left = steps;
  }

  /** Remaining steps. */
  get left(): number {
    return this.#left;
  }

  /** @throws SchemaTooComplexError if the budget is exhausted */
  spend(steps = 1): void {
    this.#left -= steps;
    if (this.#left < 0) throw new SchemaTooComplexError("following it would take too long");
  }
}
