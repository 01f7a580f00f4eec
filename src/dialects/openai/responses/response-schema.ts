import { z } from "zod";
import { dictionary, list } from "../../../http/input/list.ts";
import { jsonSchemaSchema, MAX_TOP_LOGPROBS } from "../../../engine/protocol/generation.ts";
import { ignored, refused } from "../../../http/input/known-fields.ts";
import { sizeOf } from "../../../json/size-of.ts";
import { commonFields, reasoningEffortSchema } from "../openai-request-fields.ts";
import { inputItemSchema } from "./input-items.ts";

/** Longest id of a response; the daemon's own have 37 characters. */
const MAX_ID_LENGTH = 512;
/** Metadata goes back with every event that shows the response. The API itself takes 9 KB. */
const MAX_METADATA_SIZE = 64 * 1024;

export const functionToolSchema = z.object({
  type: z.literal("function"),
  name: z.string().min(1),
  description: z.string().nullish(),
  parameters: jsonSchemaSchema.nullish().describe("JSON Schema of the arguments."),
  strict: z.boolean().nullish().describe("Required calls always fit the schema, whatever this says."),
});
export type FunctionTool = z.output<typeof functionToolSchema>;

/** Coding agents always send tools of the service's own among theirs and work without them. */
const otherToolSchema = z.object({
  type: z
    .string()
    .refine((type) => type !== "function", { abort: true })
    .describe("Left out: the daemon has no tools of its own. The response lists those in effect."),
});

export const toolChoiceSchema = z.union([
  z.enum(["auto", "none", "required"]),
  z.object({ type: z.literal("function"), name: z.string() }),
  z.object({
    type: z.literal("allowed_tools"),
    mode: z.enum(["auto", "required"]),
    tools: list(z.object({ type: z.literal("function"), name: z.string() })),
  }),
]);

export const textFormatSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text") }),
  z.object({ type: z.literal("json_object") }),
  z.object({
    type: z.literal("json_schema"),
    name: z.string().nullish(),
    description: z.string().nullish(),
    schema: jsonSchemaSchema,
    strict: z.boolean().nullish().describe("The answer always fits the schema, whatever this says."),
  }),
]);

/** POST /v1/responses. Unknown fields are ignored. */
export const responseRequestSchema = z
  .object({
    model: commonFields.model,
    input: z
      .union([z.string(), list(inputItemSchema)])
      .nullish()
      .describe("Text, or the items of the conversation."),
    instructions: z.string().nullish().describe("A system message; a later response does not inherit it."),
    previous_response_id: z
      .string()
      .max(MAX_ID_LENGTH)
      .nullish()
      .describe("A stored response whose conversation goes on with the input."),
    store: z
      .boolean()
      .nullish()
      .describe("Keep the response in memory for later ones, while there is room. Default: true."),
    max_output_tokens: z
      .int()
      .min(1)
      .nullish()
      .describe("Most tokens to generate, reasoning included. Default: until the context is full."),
    temperature: commonFields.temperature,
    top_p: commonFields.top_p,
    tools: list(z.union([functionToolSchema, otherToolSchema]))
      .nullish()
      .describe("Functions that the model may call; tools of other types are left out."),
    tool_choice: toolChoiceSchema.nullish().describe("Which calls it may or must make. Default: auto."),
    parallel_tool_calls: z.boolean().nullish().describe("False: at most one call a turn. Default: true."),
    text: z
      .object({
        format: textFormatSchema.nullish(),
        verbosity: ignored(),
      })
      .nullish()
      .describe("format: the form that the answer must have."),
    reasoning: z
      .object({ effort: reasoningEffortSchema.nullish() })
      .nullish()
      .describe("effort: lets a model that can think do so, and is passed to its template. Default: none."),
    include: list(z.string())
      .nullish()
      .describe("message.output_text.logprobs: report log-probabilities. Others are ignored."),
    top_logprobs: z
      .int()
      .min(0)
      .max(MAX_TOP_LOGPROBS)
      .nullish()
      .describe("Report the log-probability of each token of the text, and so many alternatives."),
    metadata: dictionary(z.unknown())
      .refine((metadata) => sizeOf(metadata) <= MAX_METADATA_SIZE, {
        error: `must not be larger than ${MAX_METADATA_SIZE} characters`,
      })
      .nullish()
      .describe("Given back in the response."),
    truncation: z
      .enum(["auto", "disabled"])
      .nullish()
      .describe(
        "auto: leave out the oldest turns of a conversation that does not fit. Default: disabled, which refuses it.",
      ),
    stream: commonFields.stream,
    background: z
      .literal(false, { error: "is not supported: the daemon works on requests while their clients wait" })
      .nullish()
      .describe("Only false is possible."),
    conversation: refused("conversations are not kept; use previous_response_id"),
    prompt: refused("there are no stored prompts; send instructions and input"),
    context_management: ignored(),
    moderation: ignored(),
    prompt_cache_key: ignored("prompts are cached by what they have in common"),
    prompt_cache_options: ignored(),
    prompt_cache_retention: ignored(),
    safety_identifier: ignored(),
    service_tier: ignored(),
    stream_options: ignored(),
    user: ignored(),
  })
  .meta({ id: "ResponseRequest" });

export type ResponseRequest = z.output<typeof responseRequestSchema>;

/** POST /v1/responses/input_tokens: a request without what concerns the answer alone. */
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
    input_tokens: z.int().describe("Tokens of the whole prompt."),
  })
  .meta({ id: "InputTokens" });
