import { z } from "zod";
import { jsonSchemaSchema } from "../../engine/protocol/generation.ts";
import { list, MAX_STOPS } from "../../http/input/bounded-lists.ts";
import { ignored, modelName, refused, repetitionGuardField } from "../../http/input/common-fields.ts";
import { thinkingFields } from "../reasoning-fields.ts";
import { engineFields, foreignFields, samplingFields } from "../sampling-fields.ts";
import { constraintFields } from "../structured-output-fields.ts";
import { contentBlock, textBlock } from "./content-blocks.ts";
import { toolSchema } from "./tools.ts";

/** More than any model that this API is for may think. */
const MAX_BUDGET_TOKENS = 16 * 1024 * 1024;

const textContent = z.union([z.string(), list(textBlock)]);

const messageSchema = z.discriminatedUnion("role", [
  z.object({
    role: z.literal("user"),
    content: z
      .union([z.string(), list(contentBlock)])
      .describe("Text, or blocks of text, images and tool results."),
  }),
  z.object({
    role: z.literal("assistant"),
    content: z
      .union([z.string(), list(contentBlock)])
      .describe(
        "Text, or blocks of text, thinking and tool calls. The model continues it when it is the last message.",
      ),
  }),
  z.object({ role: z.literal("system"), content: textContent }),
]);

const single = z.boolean().nullish().describe("True: at most one call per turn.");

const toolChoiceSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("auto"), disable_parallel_tool_use: single }),
  z.object({ type: z.literal("any"), disable_parallel_tool_use: single }),
  z.object({ type: z.literal("tool"), name: z.string(), disable_parallel_tool_use: single }),
  z.object({ type: z.literal("none") }),
]);

const jsonFormat = z.object({ type: z.literal("json_schema"), schema: jsonSchemaSchema });

const display = z
  .enum(["summarized", "omitted"])
  .nullish()
  .describe("omitted: thinking blocks have no text. summarized, and the default: all of it.");

/** What a client wants to have left out of the conversation before the model reads it. */
const contextManagementField = ignored(
  "the model reads the whole conversation, and the answer says that no edit was applied; an edit that would have left something out is told in the header x-daybreak-warning",
);

/** POST /v1/messages. Unknown fields are ignored; null means the same as leaving a field out. */
export const messageRequestSchema = z
  .object({
    model: modelName.nullish().describe("Model name. Default: the daemon's default model."),
    max_tokens: z.int().min(1).describe("Maximum number of tokens to generate, thinking included."),
    messages: list(messageSchema, { least: 1 }).describe("The conversation."),
    system: textContent.nullish().describe("Instructions: text, or blocks of text."),
    stream: z.boolean().nullish().describe("Stream the answer as server-sent events. Default: false."),
    repetition_guard: repetitionGuardField,
    ...samplingFields,
    ...engineFields,
    ...constraintFields,
    ...foreignFields,
    ...thinkingFields,
    stop_sequences: list(z.string().min(1), { most: MAX_STOPS }).nullish().describe("Stop sequences."),
    tools: list(toolSchema)
      .nullish()
      .describe(
        "Functions the model may call, and tools of the API that the client runs: bash, text editor, memory, computer.",
      ),
    tool_choice: toolChoiceSchema
      .nullish()
      .describe("Which functions the model may or must call. Default: auto."),
    thinking: z
      .discriminatedUnion("type", [
        z.object({
          type: z.literal("enabled"),
          budget_tokens: z
            .int()
            .min(0)
            .max(MAX_BUDGET_TOKENS)
            .nullish()
            .describe(
              "Most tokens of thinking; then the model has to answer. max_tokens limits both together.",
            ),
          display,
        }),
        z.object({ type: z.literal("adaptive"), display }).describe("Thinks on models that support it."),
        z.object({ type: z.enum(["disabled", "between_tools"]) }).describe("The same here."),
      ])
      .nullish()
      .describe("Let the model think before it answers; display: whether to show it. Default: disabled."),
    output_config: z
      .object({
        effort: z
          .enum(["low", "medium", "high", "xhigh", "max"])
          .nullish()
          .describe(
            "How much to think: passed to the chat template, or for one without levels a budget of tokens.",
          ),
        format: jsonFormat.nullish().describe("JSON Schema the answer must match."),
      })
      .nullish()
      .describe("effort: how much to think. format: a JSON Schema the answer must match."),
    output_format: jsonFormat.nullish().describe("The older place of output_config.format."),
    cache_control: ignored("prompts that share a prefix are cached automatically"),
    container: refused("there are no containers"),
    context_management: contextManagementField,
    diagnostics: ignored(),
    inference_geo: ignored("inference is local"),
    mcp_servers: refused("the daemon does not call MCP servers; send their tools in tools"),
    metadata: ignored(),
    service_tier: ignored(),
    speed: ignored(),
    user_profile_id: ignored(),
    workspace_id: ignored(),
  })
  .meta({ id: "MessageRequest" });

/** POST /v1/messages/count_tokens: a message request; only the fields that affect the prompt matter. */
export const countTokensRequestSchema = messageRequestSchema
  .partial({ max_tokens: true })
  .meta({ id: "CountTokensRequest" });

const originalTokensField = z
  .object({ original_input_tokens: z.int() })
  .optional()
  .describe("If the request has context_management: the same number, as no edit is applied.");

export const tokenCountSchema = z
  .object({
    input_tokens: z.int().describe("Tokens of the whole prompt."),
    context_management: originalTokensField,
  })
  .meta({ id: "TokenCount" });

export type MessageRequest = z.output<typeof messageRequestSchema>;

export const appliedEditsField = z
  .object({ applied_edits: z.array(z.unknown()) })
  .optional()
  .describe("If the request has context_management: no edit is applied.");

const managementSchema = z.object({
  edits: z.array(z.object({ type: z.string(), keep: z.unknown().optional() })),
});
const allSchema = z.union([z.literal("all"), z.object({ type: z.literal("all") })]);

/** Says in a message, or the end of a stream, which edits were applied. */
export function appliedEdits(asked: unknown): { context_management?: { applied_edits: [] } } {
  return asked == null ? {} : { context_management: { applied_edits: [] } };
}

/** A type is as long as a client makes it. */
const MAX_SHOWN_TYPE = 60;

/** What is told of an edit that is not made. To keep all thinking, as Claude Code asks, leaves nothing out: what the model sees of it is up to its chat template. */
export function ignoredEdits(asked: unknown): string[] {
  const edits = managementSchema.safeParse(asked).data?.edits ?? [];
  const missing = edits.find(
    ({ type, keep }) => !type.startsWith("clear_thinking_") || !allSchema.safeParse(keep).success,
  );
  if (!missing) return [];
  return [
    `context_management is not followed: ${missing.type.slice(0, MAX_SHOWN_TYPE)} leaves nothing out, so leave it out of the messages`,
  ];
}
