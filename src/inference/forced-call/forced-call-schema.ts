import type { JsonSchema, ToolChoice, ToolDefinition } from "../../engine/protocol/generation.ts";

/** A function without parameters takes none. */
const NO_ARGUMENTS: JsonSchema = { properties: {}, additionalProperties: false };

/**
 * The JSON Schema of one call of one of the tools: `{"name": …, "arguments": …}` in this order. As the answer's format, it
 * enforces a required call, with arguments that fit the tool's schema.
 */
export function forcedCallSchema(tools: readonly ToolDefinition[], choice: ToolChoice): JsonSchema {
  const allowed = typeof choice === "object" ? tools.filter(({ name }) => name === choice.name) : tools;
  return { anyOf: callSchemas(allowed) };
}

/** The JSON Schema of one call of one of the tools, or of an answer in another format. */
export function offeredCallSchema(tools: readonly ToolDefinition[], answer: JsonSchema): JsonSchema {
  return { anyOf: [...callSchemas(tools), moved(answer, `/anyOf/${tools.length}`)] };
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
