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
