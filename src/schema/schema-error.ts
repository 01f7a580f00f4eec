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
