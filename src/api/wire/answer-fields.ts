import { z } from "zod";
import { optional } from "../../http/input/common-fields.ts";
import { answerLimitSchema } from "../../engine/protocol/generation.ts";

/** Field of llama.cpp's server, accepted in every API that can report progress. */
export const returnProgressField = optional(
  z.boolean(),
  "With stream: report how much of the prompt has been processed. Default: false.",
);

export const promptProgressSchema = z
  .object({
    total: z.int().describe("Tokens in the prompt."),
    cache: z.int().describe("Prompt tokens that were already in the KV cache."),
    processed: z.int().describe("Prompt tokens in the KV cache so far."),
    time_ms: z.int().describe("Milliseconds since the engine started on the prompt."),
  })
  .meta({ id: "PromptProgress" });

/** Field of llama.cpp's server, accepted in every API that can report timings. */
export const timingsPerTokenField = optional(
  z.boolean(),
  "Report token counts and timings, in a stream with each chunk. Default: false.",
);

export const timingsSchema = z
  .object({
    cache_n: z.int().describe("Prompt tokens reused from the KV cache."),
    prompt_n: z.int().describe("Prompt tokens processed."),
    prompt_ms: z.number(),
    prompt_per_token_ms: z.number(),
    prompt_per_second: z.number(),
    predicted_n: z.int().describe("Tokens generated."),
    predicted_ms: z.number(),
    predicted_per_token_ms: z.number(),
    predicted_per_second: z.number(),
    draft_n: z.int().optional().describe("Draft tokens of speculative decoding; absent: none."),
    draft_n_accepted: z.int().optional().describe("Draft tokens that were accepted."),
  })
  .meta({ id: "LlamaServerTimings" });

/** Extra field of a finished answer, because the APIs' own finish reason is the same for all limits. */
export const limitField = answerLimitSchema
  .optional()
  .describe(
    "Of an answer that was cut off: which limit that was. max_tokens: the request's; num_predict: the model's PARAMETER; default: this API's; context: the context is full; repetition: it ran in circles (repetition_guard); time: t_max_predict_ms; indentation: n_indent.",
  );

const tokenSchema = z.object({ token: z.string(), logprob: z.number(), bytes: z.array(z.int()).nullable() });

/** Log probabilities of tokens, in the format of OpenAI and Ollama. */
export const tokenLogprobsSchema = z.array(tokenSchema.extend({ top_logprobs: z.array(tokenSchema) }));
export type TokenLogprobs = z.output<typeof tokenLogprobsSchema>;
