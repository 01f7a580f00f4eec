import { z } from "zod";
import { dictionary, list } from "../../../http/input/bounded-lists.ts";
import { jsonSchemaSchema, MAX_TOP_LOGPROBS } from "../../../engine/protocol/generation.ts";
import { ignored, refused, optional } from "../../../http/input/common-fields.ts";
import { approximateJsonLength } from "../../../json/json-values.ts";
import { commonFields } from "../openai-fields.ts";
import { inputItemSchema } from "./input-items.ts";
import { toolChoiceSchema, toolSchema } from "./response-tools.ts";
import { verbosityField } from "../output-format.ts";
import {
  constraintFields,
  engineFields,
  reasoningEffortSchema,
  samplingFields,
  strictField,
  thinkingFields,
  unsupportedFields,
} from "../../wire/generation-fields.ts";

/** Maximum length of a response ID; the daemon's are much shorter. */
const MAX_ID_LENGTH = 512;
/** Maximum length of metadata, which is repeated in every event with the response. OpenAI allows 9 KB. */
const MAX_METADATA_SIZE = 64 * 1024;

export const textFormatSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text") }),
  z.object({ type: z.literal("json_object") }),
  z.object({
    type: z.literal("json_schema"),
    name: z.string().nullish(),
    description: z.string().nullish(),
    schema: jsonSchemaSchema,
    strict: strictField,
  }),
]);

/** POST /v1/responses. Unknown fields are ignored. */
export const responseRequestSchema = z
  .object({
    model: commonFields.model,
    input: optional(z.union([z.string(), list(inputItemSchema)]), "Text, or the items of the conversation."),
    instructions: optional(z.string(), "System message, which later responses do not inherit."),
    previous_response_id: optional(
      z.string().max(MAX_ID_LENGTH),
      "ID of a stored response whose conversation the input continues.",
    ),
    store: optional(
      z.boolean(),
      "Store the response in memory for later requests, until it is evicted. Default: true.",
    ),
    max_output_tokens: optional(
      z.int().min(1),
      "Maximum number of tokens to generate, reasoning included. Default: until the context is full.",
    ),
    ...samplingFields,
    ...engineFields,
    ...constraintFields,
    ...unsupportedFields,
    ...thinkingFields,
    repetition_guard: commonFields.repetition_guard,
    tools: optional(
      list(toolSchema),
      "Functions the model may call, custom tools, and the client-side tools shell, local_shell and apply_patch. Other tools are ignored.",
    ),
    tool_choice: optional(toolChoiceSchema, "Which functions the model may or must call. Default: auto."),
    parallel_tool_calls: optional(z.boolean(), "False: at most one tool call per turn. Default: true."),
    text: optional(
      z.object({
        format: textFormatSchema.nullish(),
        verbosity: verbosityField,
      }),
      "format: format of the answer.",
    ),
    reasoning: optional(
      z.object({ effort: reasoningEffortSchema.nullish() }),
      "effort: enables thinking on models that support it, like reasoning_effort of /v1/chat/completions. Default: none.",
    ),
    include: optional(
      list(z.string()),
      "message.output_text.logprobs: return log probabilities. Other values are ignored.",
    ),
    top_logprobs: optional(
      z.int().min(0).max(MAX_TOP_LOGPROBS),
      "Return the log probability of each token and of this many alternatives.",
    ),
    metadata: optional(
      dictionary(z.unknown()).refine((metadata) => approximateJsonLength(metadata) <= MAX_METADATA_SIZE, {
        error: `must not be larger than ${MAX_METADATA_SIZE} characters`,
      }),
      "Data that is returned in the response.",
    ),
    truncation: optional(
      z.enum(["auto", "disabled"]),
      "auto: drop the oldest turns of a conversation that does not fit in the context. Default: disabled, which fails.",
    ),
    stream: commonFields.stream,
    background: optional(
      z.literal(false, { error: "is not supported: a response is generated while its client waits" }),
      "Only false is supported.",
    ),
    conversation: refused("conversations are not stored; use previous_response_id"),
    prompt: refused("there are no stored prompts; send instructions and input"),
    context_management: ignored(),
    moderation: ignored(),
    prompt_cache_key: ignored("prompts that share a prefix are cached automatically"),
    prompt_cache_options: ignored(),
    prompt_cache_retention: ignored(),
    safety_identifier: ignored(),
    service_tier: ignored(),
    stream_options: ignored(),
    user: ignored(),
  })
  .meta({ id: "ResponseRequest" });

export type ResponseRequest = z.output<typeof responseRequestSchema>;

/** POST /v1/responses/input_tokens: the fields of a response request that affect the prompt. */
export const inputTokensRequestSchema = responseRequestSchema
  .pick({
    model: true,
    input: true,
    instructions: true,
    previous_response_id: true,
    conversation: true,
    parallel_tool_calls: true,
    reasoning: true,
    text: true,
    tool_choice: true,
    tools: true,
    truncation: true,
  })
  .extend({ personality: ignored() })
  .meta({ id: "InputTokensRequest" });

export const inputTokensSchema = z
  .object({
    object: z.literal("response.input_tokens"),
    input_tokens: z.int().describe("Tokens in the whole prompt."),
  })
  .meta({ id: "InputTokens" });
