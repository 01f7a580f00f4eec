import type { JsonSchema, ToolDefinition } from "../../engine/protocol/generation.ts";

/** A function without parameters takes none. */
export const NO_ARGUMENTS: JsonSchema = { properties: {}, additionalProperties: false };

/**
 * The JSON Schema of one call of one of the tools: `{"name": …, "arguments": …}` in this order, with arguments that fit
 * the tool's schema; or of an answer in another format.
 */
export function callSchema(tools: readonly ToolDefinition[], answer?: JsonSchema): JsonSchema {
  const calls = callSchemas(tools);
  return { anyOf: answer ? [...calls, moved(answer, `/anyOf/${tools.length}`)] : calls };
}

function callSchemas(tools: readonly ToolDefinition[]): JsonSchema[] {
  return tools.map(({ name, parameters }, index) => ({
    type: "object",
    properties: {
      name: { const: name },
      arguments: moved(
        { type: "object", ...(parameters ?? NO_ARGUMENTS) },
        `/anyOf/${index}/properties/arguments`,
      ),
    },
    required: ["name", "arguments"],
    additionalProperties: false,
  }));
}

/** References start at the root of a document, so they change when the schema becomes part of another. */
function moved(schema: JsonSchema, path: string): JsonSchema {
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [key, movedValue(key, value, path)]),
  );
}

function movedValue(key: string, value: unknown, path: string): unknown {
  if (key === "$ref" && typeof value === "string") return value.replace(/^#(?=\/|$)/, `#${path}`);
  if (Array.isArray(value)) return value.map((item: unknown) => movedValue("", item, path));
  return isSchema(value) ? moved(value, path) : value;
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null;
}
