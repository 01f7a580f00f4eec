import { z } from "zod";
import type { Usage } from "../../../engine/protocol/generation.ts";
import { builtInCalls } from "./built-in-calls.ts";
import { textFormatSchema, type ResponseRequest } from "./response-schema.ts";
import { clientTools, clientToolSchema, toolChoiceSchema } from "./response-tools.ts";
import { newId } from "../../answer-fields.ts";
import { limitField, tokenLogprobsSchema } from "../../wire/answer-fields.ts";
import { reasoningEffortSchema } from "../../wire/generation-fields.ts";

const itemStatusSchema = z.enum(["in_progress", "completed", "incomplete"]);
export type ItemStatus = z.output<typeof itemStatusSchema>;

const item = { id: z.string(), status: itemStatusSchema };

const outputItemSchema = z.discriminatedUnion("type", [
  z.object({
    ...item,
    type: z.literal("reasoning"),
    summary: z
      .array(z.object({ type: z.literal("summary_text"), text: z.string() }))
      .describe("The model's full reasoning."),
  }),
  z.object({
    ...item,
    type: z.literal("message"),
    role: z.literal("assistant"),
    content: z.array(
      z.object({
        type: z.literal("output_text"),
        text: z.string(),
        annotations: z.array(z.never()),
        logprobs: tokenLogprobsSchema,
      }),
    ),
  }),
  z.object({
    ...item,
    type: z.literal("function_call"),
    call_id: z.string().describe("ID to send back with the function_call_output."),
    name: z.string(),
    arguments: z.string().describe("JSON text."),
  }),
  z.object({
    ...item,
    type: z.literal("custom_tool_call"),
    call_id: z.string().describe("ID to send back with the custom_tool_call_output."),
    name: z.string(),
    input: z.string(),
  }),
  ...builtInCalls,
]);
export type OutputItem = z.output<typeof outputItemSchema>;

const usageSchema = z.object({
  input_tokens: z.int(),
  input_tokens_details: z.object({
    cached_tokens: z.int().describe("Prompt tokens reused from the KV cache."),
  }),
  output_tokens: z.int(),
  output_tokens_details: z.object({ reasoning_tokens: z.int() }),
  total_tokens: z.int(),
});

export const responseSchema = z
  .object({
    id: z.string(),
    object: z.literal("response"),
    created_at: z.int().describe("Unix seconds."),
    completed_at: z.int().nullable(),
    status: z.enum(["in_progress", "completed", "incomplete", "failed"]),
    error: z.object({ code: z.string().describe("See docs/errors.md."), message: z.string() }).nullable(),
    incomplete_details: z
      .object({ reason: z.literal("max_output_tokens"), limited_by: limitField })
      .nullable(),
    model: z.string().describe("The model that generated the answer."),
    output: z.array(outputItemSchema),
    usage: usageSchema.nullable(),
    background: z.literal(false),
    instructions: z.string().nullable(),
    max_output_tokens: z.int().nullable(),
    metadata: z.record(z.string(), z.unknown()),
    parallel_tool_calls: z.boolean(),
    previous_response_id: z.string().nullable(),
    reasoning: z.object({ effort: reasoningEffortSchema.nullable(), summary: z.null() }),
    store: z.boolean(),
    temperature: z.number().nullable().describe("Value of the request."),
    text: z.object({ format: textFormatSchema }),
    tool_choice: toolChoiceSchema,
    tools: z.array(clientToolSchema).describe("Tools that the model can call."),
    top_logprobs: z.int(),
    top_p: z.number().nullable().describe("Value of the request."),
    truncation: z.enum(["auto", "disabled"]),
  })
  .meta({ id: "Response" });
export type ResponseObject = z.output<typeof responseSchema>;

/** Returns a response before its first output, with the request's fields. */
export function beginResponse(body: ResponseRequest, model: string): ResponseObject {
  return {
    id: newId("resp"),
    object: "response",
    created_at: Math.floor(Date.now() / 1000),
    completed_at: null,
    status: "in_progress",
    error: null,
    incomplete_details: null,
    model,
    output: [],
    usage: null,
    background: false,
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    metadata: body.metadata ?? {},
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    previous_response_id: body.previous_response_id ?? null,
    reasoning: { effort: body.reasoning?.effort ?? null, summary: null },
    store: body.store ?? true,
    temperature: body.temperature ?? null,
    text: { format: body.text?.format ?? { type: "text" } },
    tool_choice: body.tool_choice ?? "auto",
    tools: clientTools(body.tools),
    top_logprobs: body.top_logprobs ?? 0,
    top_p: body.top_p ?? null,
    truncation: body.truncation ?? "disabled",
  };
}

export function toUsage(usage: Usage): z.output<typeof usageSchema> {
  return {
    input_tokens: usage.promptTokens,
    input_tokens_details: { cached_tokens: usage.cachedTokens },
    output_tokens: usage.completionTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    total_tokens: usage.promptTokens + usage.completionTokens,
  };
}
