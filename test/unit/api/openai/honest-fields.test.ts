import { toChatRequests } from "../../../../src/api/openai/chat-request.ts";
import { chatCompletionRequestSchema } from "../../../../src/api/openai/chat-schema.ts";
import {
  completionRequestSchema,
  toCompletionRequests,
} from "../../../../src/api/openai/completion-request.ts";
import {
  embeddingsRequestSchema,
  rerankRequestSchema,
  toEmbeddings,
  toRerank,
  toRerankRequest,
} from "../../../../src/api/openai/embeddings.ts";
import { beginResponse } from "../../../../src/api/openai/responses/response-object.ts";
import { toInferenceRequest } from "../../../../src/api/openai/responses/response-request.ts";
import { responseRequestSchema } from "../../../../src/api/openai/responses/response-schema.ts";
import { type Conversion, describeHonestFields } from "../honest-fields.ts";
import {
  ENGINE_SAMPLES,
  GRAMMAR_SAMPLES,
  SAMPLING_SAMPLES,
  SCHEMA_SAMPLES,
  THINKING_SAMPLES,
} from "../field-samples.ts";
import { TOOL } from "./chat-client.ts";

const common = {
  ...SAMPLING_SAMPLES,
  ...ENGINE_SAMPLES,
  model: "other",
  repetition_guard: true,
  timings_per_token: true,
  stop: "END",
  n: 2,
  n_cmpl: 2,
  n_predict: 3,
};
const FORMATS = { response_format: { type: "json_object" }, ...SCHEMA_SAMPLES, ...GRAMMAR_SAMPLES };
const JSON_FORMAT = { type: "json_object" };
const RESPONSE_TOOL = { type: "function", name: "get_weather", parameters: { type: "object" } };
const user = (content: string) => [{ role: "user", content }];
const embedded = { model: "fake", vectors: [[0.6, 0.8]], totalTokens: 3, loadMs: 0 };
const scores = { model: "fake", scores: [1, 2], totalTokens: 3 };
const FIXED = { id: "", created_at: 0 };

const conversions: readonly Conversion[] = [
  {
    name: "POST /v1/chat/completions",
    schema: chatCompletionRequestSchema,
    base: { messages: user("hi"), tools: [TOOL], logprobs: true },
    convert: (body) => toChatRequests(chatCompletionRequestSchema.parse(body)),
    samples: {
      ...common,
      messages: user("ho"),
      max_completion_tokens: 3,
      max_tokens: 3,
      tools: [],
      tool_choice: "required",
      parallel_tool_calls: false,
      response_format: FORMATS.response_format,
      ...SCHEMA_SAMPLES,
      logprobs: false,
      top_logprobs: 2,
      n_probs: 2,
      ...THINKING_SAMPLES,
      reasoning_effort: "low",
      chat_template_kwargs: { a: 1 },
      enable_thinking: false,
      continue_final_message: false,
    },
    // add_generation_prompt can be false only with a final assistant message, and modalities has only one valid value:
    // see
    // chat-request.test.ts. Grammars and functions cannot be combined with the tools of this request: see
    // output-format.test.ts and legacy-functions.test.ts.
    testedOtherwise: [
      "stream",
      "stream_options",
      "return_progress",
      "modalities",
      "add_generation_prompt",
      ...Object.keys(GRAMMAR_SAMPLES),
      "functions",
      "function_call",
    ],
  },
  {
    name: "POST /v1/completions",
    schema: completionRequestSchema,
    base: { prompt: "hi" },
    convert: (body) => {
      const parsed = completionRequestSchema.parse(body);
      return toCompletionRequests(parsed, [JSON.stringify(parsed.prompt)]);
    },
    samples: {
      ...common,
      ...FORMATS,
      prompt: "ho",
      max_tokens: 3,
      max_completion_tokens: 3,
      logprobs: 1,
      n_probs: 1,
      suffix: "end",
      best_of: 4,
    },
    testedOtherwise: ["stream", "stream_options", "return_progress", "echo"],
  },
  {
    name: "POST /v1/embeddings",
    schema: embeddingsRequestSchema,
    base: { input: "hi" },
    convert: async (body) => {
      const parsed = embeddingsRequestSchema.parse(body);
      return [parsed.model, parsed.input, await toEmbeddings(embedded, parsed)];
    },
    samples: { model: "other", input: "ho", encoding_format: "base64", dimensions: 1 },
    testedOtherwise: [],
  },
  {
    name: "POST /v1/rerank",
    schema: rerankRequestSchema,
    base: { query: "hi", documents: ["a", "b"] },
    convert: (body) => {
      const parsed = rerankRequestSchema.parse(body);
      return [toRerankRequest(parsed), toRerank("rerank-1", scores, parsed)];
    },
    samples: { model: "other", query: "ho", documents: ["c", "d"], top_n: 1, return_documents: true },
    testedOtherwise: [],
  },
  {
    name: "POST /v1/responses",
    schema: responseRequestSchema,
    base: { input: "hi", tools: [RESPONSE_TOOL] },
    convert: (body) => {
      const parsed = responseRequestSchema.parse(body);
      const items = [{ role: "user" as const, content: JSON.stringify(parsed.input) }];
      const request = toInferenceRequest(parsed, { items, earlier: 0 });
      return [request, { ...beginResponse(parsed, "fake"), ...FIXED }];
    },
    samples: {
      repetition_guard: true,
      ...SAMPLING_SAMPLES,
      ...ENGINE_SAMPLES,
      ...THINKING_SAMPLES,
      ...SCHEMA_SAMPLES,
      model: "other",
      input: "ho",
      instructions: "Be brief.",
      previous_response_id: "resp_1",
      store: false,
      max_output_tokens: 3,
      tools: [],
      tool_choice: "none",
      parallel_tool_calls: false,
      text: { format: JSON_FORMAT },
      reasoning: { effort: "low" },
      include: ["message.output_text.logprobs"],
      top_logprobs: 2,
      metadata: { a: "b" },
      truncation: "auto",
    },
    // background has only one valid value: see responses.test.ts. A grammar cannot be combined with the tools of this
    // request.
    testedOtherwise: ["stream", "background", ...Object.keys(GRAMMAR_SAMPLES)],
  },
];

describeHonestFields(conversions);
