import { z } from "zod";
import { jsonSchemaSchema } from "../../engine/protocol/generation.ts";
import { list, MAX_STOPS } from "../../http/input/bounded-lists.ts";
import {
  ignored,
  refused,
  repetitionGuardField,
  modelField,
  optional,
} from "../../http/input/common-fields.ts";
import { contentBlock, textBlock } from "./content-blocks.ts";
import { toolSchema } from "./tools.ts";
import {
  constraintFields,
  engineFields,
  samplingFields,
  thinkingFields,
  unsupportedFields,
} from "../wire/generation-fields.ts";

/** Upper bound for validation of a thinking budget. */
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

const disableParallelField = optional(z.boolean(), "True: at most one tool call per turn.");

const toolChoiceSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("auto"), disable_parallel_tool_use: disableParallelField }),
  z.object({ type: z.literal("any"), disable_parallel_tool_use: disableParallelField }),
  z.object({ type: z.literal("tool"), name: z.string(), disable_parallel_tool_use: disableParallelField }),
  z.object({ type: z.literal("none") }),
]);

const jsonFormat = z.object({ type: z.literal("json_schema"), schema: jsonSchemaSchema });

const display = optional(
  z.enum(["summarized", "omitted"]),
  "omitted: thinking blocks have no text. summarized, the default: the full text.",
);

/** Requested edits of the conversation, such as clearing old tool results. None is supported. */
const contextManagementField = ignored(
  "the model reads the whole conversation, and the answer reports that no edit was applied; the header x-daybreak-warning names an edit that would have removed something",
);

/** POST /v1/messages. Unknown fields are ignored; null means the same as leaving a field out. */
export const messageRequestSchema = z
  .object({
    model: modelField,
    max_tokens: z.int().min(1).describe("Maximum number of tokens to generate, thinking included."),
    messages: list(messageSchema, { min: 1 }).describe("The conversation."),
    system: optional(textContent, "Instructions: text, or blocks of text."),
    stream: optional(z.boolean(), "Stream the answer as server-sent events. Default: false."),
    repetition_guard: repetitionGuardField,
    ...samplingFields,
    ...engineFields,
    ...constraintFields,
    ...unsupportedFields,
    ...thinkingFields,
    stop_sequences: optional(list(z.string().min(1), { max: MAX_STOPS }), "Stop sequences."),
    tools: optional(
      list(toolSchema),
      "Functions the model may call, and the API's client-side tools: bash, text editor, memory, computer.",
    ),
    tool_choice: optional(toolChoiceSchema, "Which functions the model may or must call. Default: auto."),
    thinking: optional(
      z.discriminatedUnion("type", [
        z.object({
          type: z.literal("enabled"),
          budget_tokens: optional(
            z.int().min(0).max(MAX_BUDGET_TOKENS),
            "Maximum number of thinking tokens; then the model must answer. max_tokens limits thinking and answer together.",
          ),
          display,
        }),
        z.object({ type: z.literal("adaptive"), display }).describe("Thinks on models that support it."),
        z.object({ type: z.enum(["disabled", "between_tools"]) }).describe("Both disable thinking."),
      ]),
      "Let the model think before it answers; display: whether to return the text. Default: disabled.",
    ),
    output_config: optional(
      z.object({
        effort: optional(
          z.enum(["low", "medium", "high", "xhigh", "max"]),
          "Amount of thinking: passed to the chat template, or a token budget for a template without levels.",
        ),
        format: optional(jsonFormat, "JSON Schema the answer must match."),
      }),
      "effort: amount of thinking. format: a JSON Schema the answer must match.",
    ),
    output_format: optional(jsonFormat, "Older form of output_config.format."),
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

/** POST /v1/messages/count_tokens: a message request of which only the fields of the prompt matter. */
export const countTokensRequestSchema = messageRequestSchema
  .partial({ max_tokens: true })
  .meta({ id: "CountTokensRequest" });

const originalTokensField = z
  .object({ original_input_tokens: z.int() })
  .optional()
  .describe("If the request has context_management: the same count, because no edit is applied.");

export const tokenCountSchema = z
  .object({
    input_tokens: z.int().describe("Tokens in the whole prompt."),
    context_management: originalTokensField,
  })
  .meta({ id: "TokenCount" });

export type MessageRequest = z.output<typeof messageRequestSchema>;

export const appliedEditsField = z
  .object({ applied_edits: z.array(z.unknown()) })
  .optional()
  .describe("If the request has context_management: always empty, because no edit is applied.");

const contextManagementSchema = z.object({
  edits: z.array(z.object({ type: z.string(), keep: z.unknown().optional() })),
});
const keepAllSchema = z.union([z.literal("all"), z.object({ type: z.literal("all") })]);

/** Field of a message or a stream's last event that lists the applied edits: none. */
export function appliedEdits(requested: unknown): { context_management?: { applied_edits: [] } } {
  return requested == null ? {} : { context_management: { applied_edits: [] } };
}

/** Maximum length of a client's text in a warning. */
const MAX_TYPE_LENGTH = 60;

/**
 * Returns warnings about edits that are not applied. Keeping all thinking, as Claude Code requests, needs no warning:
 * it removes nothing.
 */
export function ignoredEdits(requested: unknown): string[] {
  const edits = contextManagementSchema.safeParse(requested).data?.edits ?? [];
  const unsupported = edits.find(
    ({ type, keep }) => !type.startsWith("clear_thinking_") || !keepAllSchema.safeParse(keep).success,
  );
  if (!unsupported) return [];
  return [
    `context_management is not supported: ${unsupported.type.slice(0, MAX_TYPE_LENGTH)} was not applied, so remove the content from the messages`,
  ];
}
