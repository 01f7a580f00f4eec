import { z } from "zod";
import { finishReasonSchema, jsonSchemaSchema, MAX_TOP_LOGPROBS } from "../../engine/protocol/generation.ts";
import { SAMPLING_FIELDS } from "../../engine/protocol/sampling-fields.ts";
import { dictionary, list, MAX_STOPS } from "../../http/input/bounded-lists.ts";
import { repetitionGuardField, optional } from "../../http/input/common-fields.ts";
import {
  constraintFields,
  engineFields,
  functionToolSchema,
  probabilitiesField,
  samplingFields,
  thinkingFields,
  thinkSchema,
  unsupportedFields,
} from "./generation-fields.ts";
import { limitField, promptProgressSchema, timingsPerTokenField } from "./answer-fields.ts";

/** Maximum number of tokens if neither the request nor the Modelfile sets a limit. */
export const DEFAULT_MAX_TOKENS = 512;

export const streamField = optional(z.boolean(), "Stream the answer as lines of JSON. Default: false.");

const toolChoiceSchema = z.union([
  z.enum(["auto", "none", "required"]),
  z.object({ type: z.literal("function"), function: z.object({ name: z.string() }) }),
]);

/** Fields common to /api/generate, /api/chat and the chat frames of /ws/chat. */
export const generationFields = {
  max_tokens: optional(
    z.int().min(1),
    `Maximum number of tokens to generate. Default: the Modelfile's, otherwise ${DEFAULT_MAX_TOKENS}.`,
  ),
  n_predict: optional(z.int().min(1), "llama.cpp's name of max_tokens."),
  ...samplingFields,
  // Stricter than in the other APIs, whose clients send any number.
  seed: optional(z.int().min(-1), SAMPLING_FIELDS.seed.description),
  ...engineFields,
  timings_per_token: timingsPerTokenField,
  stop: optional(list(z.string().min(1), { max: MAX_STOPS }), "Stop sequences; not included in the answer."),
  repetition_guard: repetitionGuardField,
  tools: optional(list(functionToolSchema), "Functions the model may call."),
  tool_choice: optional(
    toolChoiceSchema,
    '"auto", "none", "required", or one function by name. Default: auto.',
  ),
  format: optional(
    z.union([z.literal("json"), z.literal(""), jsonSchemaSchema]),
    '"json" for any JSON object, or a JSON Schema the answer must match.',
  ),
  ...constraintFields,
  ...unsupportedFields,
  ...thinkingFields,
  images: optional(list(z.string()), "Images as base64 (PNG, JPEG, GIF, BMP, WebP)."),
  think: thinkSchema.describe(
    'Let the model think before it answers: true, false, or "low", "medium", "high", "max". A level is passed to the chat template; for a template without levels, it limits thinking to 1024, 4096 or 16384 tokens. Default: the Modelfile\'s, otherwise false.',
  ),
};

/** Fields that request log probabilities. */
export const logprobFields = {
  logprobs: optional(
    z.int().min(0).max(MAX_TOP_LOGPROBS),
    "Report the log probability of each token of the text and of this many alternatives.",
  ),
  n_probs: probabilitiesField,
};

export const messageSchema = z.discriminatedUnion("role", [
  z.object({
    role: z.enum(["system", "developer"]).describe("Instructions; developer is treated as system."),
    content: z.string().describe("Message text."),
  }),
  z.object({
    role: z.literal("user"),
    content: z.string().describe("Message text."),
    images: optional(list(z.string()), "Images as base64 (PNG, JPEG, GIF, BMP, WebP)."),
    audio: optional(list(z.string()), "Audio recordings as base64 (WAV, MP3, FLAC)."),
  }),
  z.object({
    role: z.literal("assistant"),
    content: optional(z.string(), "Message text; optional with tool calls."),
    thinking: optional(z.string(), "The model's earlier reasoning, for chat templates that include it."),
    tool_calls: optional(
      list(
        z.object({
          id: z.string().nullish(),
          function: z.object({
            name: z.string(),
            arguments: z.union([z.string(), dictionary(z.unknown())]).describe("JSON text or an object."),
          }),
        }),
      ),
      "Tool calls of the model in this turn.",
    ),
  }),
  z.object({
    role: z.literal("tool"),
    content: z.string().describe("Result of the tool."),
    tool_call_id: optional(z.string(), "ID of the tool call that this result is for."),
    name: optional(z.string(), "Tool name."),
  }),
]);

/** Token counts and speed. */
const statisticsFields = {
  prompt_tokens: z.int().describe("Tokens in the prompt, chat template included."),
  cached_tokens: z.int().describe("Prompt tokens reused from the KV cache."),
  completion_tokens: z.int().describe("Tokens generated."),
  draft_tokens: z.int().optional().describe("Draft tokens of speculative decoding; absent: none."),
  draft_tokens_accepted: z.int().optional().describe("Draft tokens that were accepted."),
  tokens_per_second: z.number().describe("Decode speed."),
};

/** Token counts and speed of the answer so far, in each chunk with timings_per_token. */
export const deltaStatisticsFields = z.object(statisticsFields).partial().shape;

/** Final fields of an answer, streamed or not. */
export const summaryFields = {
  done_reason: finishReasonSchema.describe(
    "Reason for the end: stop (end of turn or a stop sequence), length (token limit) or tool_calls.",
  ),
  limited_by: limitField,
  total_duration_ms: z
    .int()
    .describe("Milliseconds from the receipt of the request to the end, including the time in the queue."),
  moved: z
    .object({
      times: z.int().describe("Number of failovers to another machine."),
      other_tokens: z
        .int()
        .describe(
          "Tokens already sent for which the next machine would have chosen others; 0: the text is the same as from a single machine.",
        ),
    })
    .optional()
    .describe("In a fleet: the answering machine failed, and others continued the answer."),
  ...statisticsFields,
};

export const wireToolCallSchema = z
  .object({
    id: z.string(),
    type: z.literal("function"),
    function: z.object({
      name: z.string(),
      arguments: z.string().describe("JSON text, exactly as the model wrote it."),
    }),
  })
  .meta({ id: "ToolCall" });

const tokenProperties = {
  id: z.int().describe("ID of the token in the model's vocabulary."),
  token: z.string().describe("Text of the token."),
  bytes: z.array(z.int()).optional().describe("Bytes of the token, if they are not valid UTF-8."),
  logprob: z.number().describe("Natural logarithm of the probability before sampling."),
};

export const answerTokenSchema = z
  .object({
    ...tokenProperties,
    top: z.array(z.object(tokenProperties)).describe("Most likely tokens at this position."),
  })
  .meta({ id: "AnswerToken" });
/** Token of an answer in the daemon's own API. */
export type AnswerToken = z.output<typeof answerTokenSchema>;

/** Field of answers and chunks. */
export const logprobsField = {
  logprobs: z
    .array(answerTokenSchema)
    .optional()
    .describe("Tokens of the text, if the request has logprobs."),
};

const answerMessageSchema = z.object({
  role: z.literal("assistant"),
  content: z.string().describe("The text, or part of it."),
  thinking: z.string().optional().describe("The model's reasoning."),
  tool_calls: z.array(wireToolCallSchema).optional().describe("Calls of the request's tools."),
});

/** Last fields of a complete answer, or of the last line of a streamed one. */
const endFields = { ...logprobsField, done: z.literal(true), ...summaryFields };

/** Last fields of every other line of a streamed answer. */
const lineFields = {
  ...logprobsField,
  prompt_progress: promptProgressSchema.optional().describe("If the request has return_progress."),
  ...deltaStatisticsFields,
  done: z.literal(false),
};

export const chatAnswerSchema = z
  .object({ model: z.string(), message: answerMessageSchema, ...endFields })
  .meta({ id: "ChatAnswer" });

export const chatLineSchema = z
  .union([z.object({ model: z.string(), message: answerMessageSchema, ...lineFields }), chatAnswerSchema])
  .meta({ id: "ChatLine" });

const generateAnswerFields = {
  model: z.string().describe("The model that generated the answer."),
  thinking: z.string().optional().describe("The model's reasoning."),
  tool_calls: z.array(wireToolCallSchema).optional().describe("Calls of the request's tools."),
};

export const generateAnswerSchema = z
  .object({
    ...generateAnswerFields,
    response: z.string().describe("The generated text."),
    ...endFields,
  })
  .meta({ id: "GenerateAnswer" });

export const generateLineSchema = z
  .union([
    z.object({
      ...generateAnswerFields,
      response: z.string().describe("Part of the text."),
      ...lineFields,
    }),
    generateAnswerSchema,
  ])
  .meta({ id: "GenerateLine" });

/** Default number of alternatives to report for each token. */
export const DEFAULT_ALTERNATIVES = 5;

/** Input of an experiment: a chat or a prompt, and the sampling settings. */
export const experimentRequestSchema = z
  .object({
    messages: optional(list(messageSchema, { min: 1 }), "A conversation; exclusive with prompt."),
    prompt: optional(
      z.string(),
      "Text that the model continues without the chat template; exclusive with messages.",
    ),
    ...generationFields,
    seed: optional(z.int().min(0), "Sampling seed. Default: 0."),
    alternatives: optional(
      z.int().min(0).max(MAX_TOP_LOGPROBS),
      `Number of alternatives to report for each token. Default: ${DEFAULT_ALTERNATIVES}.`,
    ),
  })
  .meta({ id: "ExperimentRequest" });
export type ExperimentRequest = z.output<typeof experimentRequestSchema>;

// Experiments reuse no tokens, and files recorded before this field existed lack it.
const { cached_tokens: _none, ...resultSummaryFields } = summaryFields;

export const experimentResultSchema = z
  .object({
    model: z.string(),
    text: z.string().describe("The answer."),
    thinking: z.string().optional().describe("The model's reasoning."),
    tool_calls: z.array(wireToolCallSchema).optional().describe("Calls of the request's tools."),
    tokens: z
      .array(answerTokenSchema)
      .describe("All generated tokens, including those of reasoning and tool calls."),
    ...resultSummaryFields,
    prompt_ms: z.number().describe("Milliseconds of prefill."),
    completion_ms: z.number().describe("Milliseconds of decoding."),
    sampling: z
      .record(z.string(), z.unknown())
      .describe("Effective sampling settings: the request's, otherwise the model's, otherwise the defaults."),
    template_sha256: z.string().optional().describe("SHA-256 of the chat template."),
    where: z.enum(["daemon", "browser"]).describe("Environment of the run."),
    machine: z.string().describe("Processor and operating system, or the browser."),
    gpu_layers: z
      .int()
      .optional()
      .describe("Layers on a GPU, whose results are rounded differently from a CPU's."),
    at: z.string().describe("Time of the run, ISO 8601."),
    engine_sha256: z.string().describe("SHA-256 of the engine's WebAssembly."),
  })
  .meta({ id: "ExperimentResult" });
export type ExperimentResult = z.output<typeof experimentResultSchema>;
