import { z } from "zod";
import type { ToolDefinition } from "../../engine/protocol/generation.ts";
import { jsonSchemaSchema } from "../../engine/protocol/generation.ts";
import { clientTool } from "./client-tools.ts";

/** Fields such as cache_control, defer_loading, input_examples and eager_input_streaming are ignored. */
export const toolSchema = z
  .looseObject({
    type: z
      .string()
      .refine((type) => type === "custom" || clientTool(type, {}) !== undefined, {
        error: ({ input }) =>
          `is not supported: "${String(input).slice(0, 60)}" is not a tool that the client runs as one function; ` +
          "leave it out, or send a tool of your own with an input_schema",
      })
      .nullish()
      .describe("custom, or a tool that the client runs: bash_…, text_editor_…, memory_… or computer_…."),
    name: z.string().min(1),
    description: z.string().nullish(),
    strict: z
      .boolean()
      .nullish()
      .describe("Refuse a schema that cannot be enforced, instead of enforcing what can be."),
    input_schema: jsonSchemaSchema.optional().describe("JSON Schema of the arguments, for custom tools."),
  })
  .refine(({ type, input_schema: schema }) => (type != null && type !== "custom") || schema !== undefined, {
    path: ["input_schema"],
    error: "is missing",
  });
type Tool = z.output<typeof toolSchema>;

/** What the model is told of a tool. */
export function toToolDefinition(tool: Tool): ToolDefinition {
  const { type, name, description, strict, input_schema: parameters } = tool;
  const known = type == null ? undefined : clientTool(type, tool);
  return {
    name,
    description: description ?? known?.description,
    parameters: parameters ?? known?.parameters,
    ...(strict != null && { strict }),
  };
}
