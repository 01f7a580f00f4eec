import { z } from "zod";
import { dictionary, list } from "../../http/input/list.ts";
import { jsonSchemaSchema, MAX_TOP_LOGPROBS } from "../../engine/protocol/generation.ts";
import { ignored, refused } from "../../http/input/known-fields.ts";
import { commonFields, reasoningEffortSchema, tokenLimit } from "./openai-request-fields.ts";

const textPart = z.object({ type: z.literal("text"), text: z.string() });

const userPart = z.discriminatedUnion("type", [
  textPart,
  z.object({
    type: z.literal("image_url"),
    image_url: z.object({
      url: z.string().describe("The image as a data: URL; URLs are not fetched."),
      detail: z.string().nullish().describe("Ignored."),
    }),
  }),
  z.object({ type: z.literal("input_audio") }).describe("Refused: no model here hears."),
  z.object({ type: z.literal("file") }).describe("Refused: send text or images."),
]);

const assistantPart = z.discriminatedUnion("type", [
  textPart,
  z.object({ type: z.literal("refusal"), refusal: z.string() }),
]);

const textContent = z
  .union([z.string(), list(textPart)])
  .nullish()
  .describe("Text, or parts of text.");
const content = z.union([z.string(), list(userPart)]).nullish();
const name = z.string().nullish().describe("Name of the participant, for templates that show it.");

const messageSchema = z.discriminatedUnion("role", [
  z.object({
    role: z.enum(["system", "developer"]).describe("Instructions; developer means the same as system."),
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
    content: z
      .union([z.string(), list(assistantPart)])
      .nullish()
      .describe("Text; may be left out beside tool calls. As the last message it is continued."),
    refusal: z.string().nullish(),
    name,
    reasoning_content: z
      .string()
      .nullish()
      .describe("What the model thought, for templates that want it back."),
    tool_calls: list(
      z.object({
        id: z.string(),
        type: z.literal("function").default("function"),
        function: z.object({ name: z.string(), arguments: z.string().describe("JSON text.") }),
      }),
    ).nullish(),
  }),
  z.object({
    role: z.literal("tool"),
    content: content.describe("Text, or parts of text and images."),
    tool_call_id: z.string().describe("The call that this answers."),
  }),
]);

const toolSchema = z.object({
  type: z.literal("function", { error: 'only tools of type "function" are supported' }),
  function: z.object({
    name: z.string().min(1),
    description: z.string().nullish(),
    parameters: jsonSchemaSchema.nullish().describe("JSON Schema of the arguments."),
    strict: z.boolean().nullish().describe("Calls always fit the schema, whatever this says."),
  }),
});

const namedTool = z.object({ type: z.literal("function"), function: z.object({ name: z.string() }) });

const toolChoiceSchema = z.union([
  z.enum(["auto", "none", "required"]),
  namedTool,
  z.object({
    type: z.literal("allowed_tools"),
    allowed_tools: z.object({ mode: z.enum(["auto", "required"]), tools: list(namedTool) }),
  }),
]);

const responseFormatSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text") }),
  z.object({ type: z.literal("json_object") }),
  z.object({
    type: z.literal("json_schema"),
    json_schema: z.object({
      name: z.string().nullish(),
      description: z.string().nullish(),
      schema: jsonSchemaSchema.nullish().describe("Absent: any JSON object."),
      strict: z.boolean().nullish().describe("The answer always fits the schema, whatever this says."),
    }),
  }),
]);

/** POST /v1/chat/completions. Unknown fields are ignored. */
export const chatCompletionRequestSchema = z
  .object({
    ...commonFields,
    messages: list(messageSchema, { least: 1 }).describe("The conversation."),
    max_completion_tokens: tokenLimit.describe(
      "Most tokens to generate, reasoning included. Default, and -1: until the context is full.",
    ),
    max_tokens: tokenLimit.describe("The older name of max_completion_tokens."),
    tools: list(toolSchema).nullish().describe("Functions that the model may call."),
    tool_choice: toolChoiceSchema.nullish().describe("Which calls it may or must make. Default: auto."),
    parallel_tool_calls: z.boolean().nullish().describe("False: at most one call a turn. Default: true."),
    response_format: responseFormatSchema.nullish().describe("The form that the answer must have."),
    logprobs: z.boolean().nullish().describe("Report the log-probability of each token of the text."),
    top_logprobs: z
      .int()
      .min(0)
      .max(MAX_TOP_LOGPROBS)
      .nullish()
      .describe("Alternatives to report for each token; needs logprobs."),
    reasoning_effort: reasoningEffortSchema
      .nullish()
      .describe("Lets a model that can think do so, and is passed to its template. Default: none."),
    chat_template_kwargs: dictionary(z.unknown())
      .nullish()
      .describe("Further variables for the model's template, such as enable_thinking."),
    modalities: list(z.string()).nullish().describe('Only ["text"] is possible.'),
    audio: ignored("without audio in modalities it says nothing"),
    functions: refused("functions is obsolete; use tools"),
    function_call: refused("function_call is obsolete; use tool_choice"),
    web_search_options: refused("the daemon searches nowhere; give it a tool of your own"),
    metadata: ignored(),
    moderation: ignored(),
    prediction: ignored("it would only be faster"),
    prompt_cache_key: ignored("prompts are cached by what they have in common"),
    prompt_cache_options: ignored(),
    prompt_cache_retention: ignored(),
    safety_identifier: ignored(),
    service_tier: ignored(),
    store: ignored("nothing is stored"),
    verbosity: ignored(),
  })
  .meta({ id: "ChatCompletionRequest" });

export type ChatCompletionRequest = z.output<typeof chatCompletionRequestSchema>;
export type ChatCompletionMessage = z.output<typeof messageSchema>;
