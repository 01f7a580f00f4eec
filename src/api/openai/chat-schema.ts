import { z } from "zod";
import { list } from "../../http/input/bounded-lists.ts";
import { MAX_TOP_LOGPROBS } from "../../engine/protocol/generation.ts";
import { ignored, refused, refusedEvenEmpty, optional } from "../../http/input/common-fields.ts";
import { nestedFormatSchema } from "./custom-tools.ts";
import { functionCallSchema, functionFields, functionMessageSchema } from "./legacy-functions.ts";
import { commonFields, tokenLimit } from "./openai-fields.ts";
import { formatFields, verbosityField } from "./output-format.ts";
import {
  functionSchema,
  probabilitiesField,
  strictField,
  templateThinkingFields,
  thinkingFields,
} from "../wire/generation-fields.ts";

const textPart = z.object({ type: z.literal("text"), text: z.string() });

const userPart = z.discriminatedUnion("type", [
  textPart,
  z.object({
    type: z.literal("image_url"),
    image_url: z.union([
      z.string().describe("Same as url."),
      z.object({
        url: z.string().describe("The image as a data: URL; remote URLs are not fetched."),
        detail: optional(z.string(), "Ignored."),
      }),
    ]),
  }),
  z.object({
    type: z.literal("input_audio"),
    input_audio: z.object({
      data: z.string().describe("A recording as base64: WAV, MP3 or FLAC."),
      format: optional(z.string(), "Ignored: the format is detected."),
    }),
  }),
  z.object({ type: z.literal("file") }).describe("Refused: send text or images."),
]);

const assistantPart = z.discriminatedUnion("type", [
  textPart,
  z.object({ type: z.literal("refusal"), refusal: z.string() }),
]);

const textContent = optional(z.union([z.string(), list(textPart)]), "Text, or parts of text.");
const content = z.union([z.string(), list(userPart)]).nullish();
const name = optional(z.string(), "Name of the participant, for chat templates that include it.");

const functionCall = z.object({
  id: z.string(),
  type: z.literal("function").default("function"),
  function: z.object({ name: z.string(), arguments: z.string().describe("JSON text.") }),
});

const customCall = z.object({
  id: z.string(),
  type: z.literal("custom"),
  custom: z.object({ name: z.string(), input: z.string() }),
});

const messageSchema = z.discriminatedUnion("role", [
  z.object({
    role: z.enum(["system", "developer"]).describe("Instructions; developer is treated as system."),
    content: textContent,
    name,
  }),
  z.object({
    role: z.literal("user"),
    content: content.describe("Text, or parts of text and images."),
    name,
  }),
  z.object({
    role: z.literal("assistant"),
    content: optional(
      z.union([z.string(), list(assistantPart)]),
      "Text; optional with tool calls. See continue_final_message for the last message.",
    ),
    refusal: z.string().nullish(),
    name,
    reasoning_content: optional(
      z.string(),
      "The model's earlier reasoning, for chat templates that include it.",
    ),
    tool_calls: list(z.union([functionCall, customCall])).nullish(),
    function_call: optional(functionCallSchema, "Older form of tool_calls."),
  }),
  functionMessageSchema,
  z.object({
    role: z.literal("tool"),
    content: content.describe("Text, or parts of text and images."),
    tool_call_id: z.string().describe("ID of the tool call that this result is for."),
  }),
]);

const functionTool = z.object({
  type: z.literal("function"),
  function: functionSchema.extend({ strict: strictField }),
});

const customTool = z.object({
  type: z.literal("custom"),
  custom: z.object({
    name: z.string().min(1),
    description: z.string().nullish(),
    format: nestedFormatSchema.nullish(),
  }),
});

const toolSchema = z.discriminatedUnion("type", [functionTool, customTool], {
  error: 'only tools of type "function" or "custom" are supported',
});

const namedTool = z.discriminatedUnion("type", [
  z.object({ type: z.literal("function"), function: z.object({ name: z.string() }) }),
  z.object({ type: z.literal("custom"), custom: z.object({ name: z.string() }) }),
]);

const toolChoiceSchema = z.union([
  z.enum(["auto", "none", "required"]),
  namedTool,
  z.object({
    type: z.literal("allowed_tools"),
    allowed_tools: z.object({ mode: z.enum(["auto", "required"]), tools: list(namedTool) }),
  }),
]);

/** POST /v1/chat/completions. Unknown fields are ignored. */
export const chatCompletionRequestSchema = z
  .object({
    ...commonFields,
    messages: list(messageSchema, { min: 1 }).describe("The conversation."),
    max_completion_tokens: tokenLimit.describe(
      "Maximum number of tokens to generate, reasoning included. Default, and -1: until the context is full.",
    ),
    max_tokens: tokenLimit.describe("Older name of max_completion_tokens."),
    tools: optional(list(toolSchema), "Functions the model may call, and custom tools, whose input is text."),
    tool_choice: optional(toolChoiceSchema, "Which functions the model may or must call. Default: auto."),
    parallel_tool_calls: optional(z.boolean(), "False: at most one tool call per turn. Default: true."),
    n_predict: z
      .union([tokenLimit, z.literal(0)])
      .describe("llama.cpp's name of max_completion_tokens; 0: only process the prompt, to cache it."),
    ...formatFields,
    logprobs: optional(z.boolean(), "Return the log probability of each token."),
    top_logprobs: optional(
      z.int().min(0).max(MAX_TOP_LOGPROBS),
      "Number of alternatives to return for each token; requires logprobs.",
    ),
    n_probs: probabilitiesField,
    ...thinkingFields,
    ...templateThinkingFields,
    continue_final_message: optional(
      z.boolean(),
      "Continue a final assistant message. Default: true, unless the answer has a format or must be a tool call.",
    ),
    add_generation_prompt: optional(
      z.boolean(),
      "False: the answer continues a final assistant message, and without one the request is refused. Default: true, which lets continue_final_message decide.",
    ),
    parse_tool_calls: refused(
      "tool calls are always separate from the text; leave out the tools to get text",
      true,
    ),
    modalities: optional(list(z.string()), 'Only ["text"] is supported.'),
    audio: ignored("it only applies with audio in modalities"),
    ...functionFields,
    web_search_options: refusedEvenEmpty("the daemon cannot search the web; send a tool of your own"),
    metadata: ignored(),
    moderation: ignored(),
    prediction: ignored("it is only an optimization"),
    prompt_cache_key: ignored("prompts that share a prefix are cached automatically"),
    prompt_cache_options: ignored(),
    prompt_cache_retention: ignored(),
    safety_identifier: ignored(),
    service_tier: ignored(),
    store: ignored("nothing is stored"),
    verbosity: verbosityField,
  })
  .meta({ id: "ChatCompletionRequest" });

export type ChatCompletionRequest = z.output<typeof chatCompletionRequestSchema>;
export type ChatCompletionMessage = z.output<typeof messageSchema>;
export type ChatCompletionToolCall = z.output<typeof functionCall> | z.output<typeof customCall>;
export type NamedTool = z.output<typeof namedTool>;
