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
