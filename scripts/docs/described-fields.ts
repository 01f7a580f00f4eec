import { z } from "zod";

/** A field of an object as the documentation shows it. */
interface DescribedField {
  readonly name: string;
  readonly required: boolean;
  /** Such as `string`, `array of integer`, `"ok" | "starting"`. */
  readonly type: string;
  readonly description: string;
}

interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly items?: JsonSchema;
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, JsonSchema>>;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
}

/**
 * The fields of a schema: of an object, of the entries of a list, or of each variant of a union in turn. Empty
 * when it is none of these.
 */
export function describedFields(schema: z.ZodType): readonly (readonly DescribedField[])[] {
  const root: JsonSchema = JSON.parse(
    JSON.stringify(z.toJSONSchema(schema, { io: "input", unrepresentable: "any" })),
  );
  return variants(root, root).map((variant) =>
    Object.entries(variant.properties ?? {}).map(([name, field]) => ({
      name,
      required: variant.required?.includes(name) ?? false,
      type: typeName(field),
      description: describe(field),
    })),
  );
}

function variants(schema: JsonSchema, root: JsonSchema): readonly JsonSchema[] {
  const named = schema.$ref === undefined ? undefined : root.$defs?.[lastPart(schema.$ref)];
  if (named) return variants(named, root);
  const members = schema.anyOf ?? schema.oneOf;
  if (members) return members.flatMap((member) => variants(member, root));
  if (schema.items) return variants(schema.items, root);
  return schema.properties ? [schema] : [];
}

function describe(field: JsonSchema): string {
  const fallback = field.default === undefined ? "" : `Default: ${JSON.stringify(field.default)}.`;
  return [field.description ?? "", fallback].filter((part) => part !== "").join(" ");
}

function typeName(field: JsonSchema): string {
  if (field.const !== undefined) return JSON.stringify(field.const);
  if (field.enum) return field.enum.map((value) => JSON.stringify(value)).join(" | ");
  const members = field.anyOf ?? field.oneOf;
  if (members) return [...new Set(members.map(typeName))].join(" or ");
  if (field.$ref !== undefined) return lastPart(field.$ref);
  if (field.type === "array") return `array of ${field.items ? typeName(field.items) : "any"}`;
  if (Array.isArray(field.type)) return field.type.join(" or ");
  return typeof field.type === "string" ? field.type : "any";
}

function lastPart(reference: string): string {
  return reference.split("/").at(-1) ?? reference;
}
