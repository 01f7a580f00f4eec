/** How a keyword is applied to the answer. */
type Treatment =
  /** Enforced by the grammar. */
  | "grammar"
  /** Enforced by the grammar, or checked after the answer if the grammar would become too large. */
  | "grammar or check"
  /** Without effect on values. */
  | "annotation"
  /** Neither enforced nor checked: refused in strict mode, ignored otherwise. */
  | "refused in strict mode";

/** Kind of a keyword's value. */
type Shape =
  | "schema"
  | "schema list"
  | "schema map"
  | "dependencies"
  | "number"
  | "count"
  | "text"
  | "names"
  | "name map"
  | "flag"
  | "values"
  | "value"
  | "types"
  | "other";

interface Keyword {
  readonly shape: Shape;
  readonly treatment: Treatment;
  /** One sentence for the documentation. */
  readonly note: string;
}

const keyword = <const Kind extends Shape>(
  shape: Kind,
  treatment: Treatment,
  note: string,
): Keyword & { readonly shape: Kind } => ({ shape, treatment, note });

const annotation = (note: string) => keyword("other", "annotation", note);

const VISIBLE_IN_TOOLS = "The model sees it in the parameters of tools, not in the format of an answer.";

/** Keywords of JSON Schema from draft 4 to 2020-12; the table in the documentation is generated from these. */
export const KEYWORDS = {
  type: keyword("types", "grammar", "One type or a list of them; a number without a fraction is an integer."),
  enum: keyword("values", "grammar", "Values that do not fit the other keywords are left out."),
  const: keyword("value", "grammar", "Any JSON value."),

  minLength: keyword("count", "grammar or check", "Counts characters (code points)."),
  maxLength: keyword("count", "grammar or check", "Counts characters (code points)."),
  pattern: keyword(
    "text",
    "grammar or check",
    "ECMA-262 with look-ahead. A pattern that is not regular (a back-reference) is refused in strict mode.",
  ),
  format: keyword(
    "text",
    "grammar or check",
    "The formats of 2020-12, by their common texts; any other is an annotation.",
  ),

  minimum: keyword("number", "grammar", "For integers and fractions, and together with multipleOf."),
  maximum: keyword("number", "grammar", "See minimum."),
  exclusiveMinimum: keyword("number", "grammar", "A number, or draft 4's true beside minimum."),
  exclusiveMaximum: keyword("number", "grammar", "A number, or draft 4's true beside maximum."),
  multipleOf: keyword("number", "grammar or check", "Checked exactly, in decimal."),

  properties: keyword("schema map", "grammar", "Written in the order of the schema."),
  required: keyword("names", "grammar", "Also of names that properties does not have."),
  additionalProperties: keyword("schema", "grammar", "Written behind the declared properties."),
  patternProperties: keyword(
    "schema map",
    "grammar or check",
    "A name that fits several has to fit them all.",
  ),
  propertyNames: keyword("schema", "grammar or check", "What it says of strings."),
  minProperties: keyword("count", "grammar or check", "Checked where a name could be written twice."),
  maxProperties: keyword("count", "grammar or check", "By counting, where the counts stay small."),
  dependentRequired: keyword("name map", "grammar or check", "Both cases are written where there are few."),
  dependentSchemas: keyword("schema map", "grammar or check", "Both cases are written where there are few."),
  dependencies: keyword("dependencies", "grammar or check", "Draft 7's form of the two above."),
  unevaluatedProperties: keyword(
    "schema",
    "grammar or check",
    "Also through allOf, anyOf, oneOf, if and $ref.",
  ),

  items: keyword("schema", "grammar", "Draft 7's list is the same as prefixItems."),
  prefixItems: keyword("schema list", "grammar", "The array may also end earlier."),
  additionalItems: keyword("schema", "grammar", "Beside a list of items alone."),
  minItems: keyword("count", "grammar", "Exact."),
  maxItems: keyword("count", "grammar", "Exact."),
  contains: keyword("schema", "grammar or check", "The first is in the grammar, others are checked."),
  minContains: keyword("count", "grammar or check", "Beside contains alone."),
  maxContains: keyword("count", "grammar or check", "Beside contains alone."),
  uniqueItems: keyword("flag", "grammar or check", "In the grammar where there are few possible items."),
  unevaluatedItems: keyword("schema", "grammar or check", "Checked beside contains."),

  allOf: keyword("schema list", "grammar", "All are merged into one."),
  anyOf: keyword("schema list", "grammar or check", "One branch after the other."),
  oneOf: keyword("schema list", "grammar or check", "Branches that overlap exclude each other."),
  not: keyword("schema", "grammar or check", "Turned into what is left."),
  if: keyword("schema", "grammar or check", "Both cases are written, with then and else."),
  // oxlint-disable-next-line unicorn/no-thenable -- the name of a keyword
  then: keyword("schema", "grammar or check", "Beside if alone."),
  else: keyword("schema", "grammar or check", "Beside if alone."),

  $ref: keyword("text", "grammar", "Inside the same schema, also recursive. Siblings hold too."),
  $defs: keyword("schema map", "grammar", "What $ref points to."),
  definitions: keyword("schema map", "grammar", "Draft 7's name of $defs."),
  $id: keyword("text", "grammar", "The base of references."),
  $anchor: keyword("text", "grammar", "A name that $ref points to."),
  $dynamicAnchor: keyword("text", "grammar", "The same as $anchor for $ref."),
  $dynamicRef: keyword(
    "text",
    "refused in strict mode",
    "The same as $ref, unless several schemas have the anchor: then it depends on the way to it.",
  ),
  $recursiveRef: keyword(
    "text",
    "refused in strict mode",
    "Draft 2019-09's form of $dynamicRef, with the same limit.",
  ),
  $recursiveAnchor: keyword("flag", "grammar", "Beside $recursiveRef alone."),

  $schema: annotation("Both drafts are understood at once."),
  $vocabulary: annotation("For authors of dialects."),
  $comment: annotation("For people."),
  title: annotation(VISIBLE_IN_TOOLS),
  description: annotation(VISIBLE_IN_TOOLS),
  default: annotation(VISIBLE_IN_TOOLS),
  examples: annotation(VISIBLE_IN_TOOLS),
  deprecated: annotation(VISIBLE_IN_TOOLS),
  readOnly: annotation(VISIBLE_IN_TOOLS),
  writeOnly: annotation(VISIBLE_IN_TOOLS),
  contentEncoding: annotation("The text is not decoded."),
  contentMediaType: annotation("The text is not decoded."),
  contentSchema: annotation("The text is not decoded."),
};

type KeywordName = keyof typeof KEYWORDS;

/** True if a name is a keyword of JSON Schema. */
export function isKeyword(name: string): name is KeywordName {
  return Object.hasOwn(KEYWORDS, name);
}
