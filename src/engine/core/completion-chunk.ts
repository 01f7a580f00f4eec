import { z } from "zod";

const logprobSchema = z.object({
  id: z.int(),
  token: z.string(),
  logprob: z.number(),
  bytes: z.array(z.number()).nullish(),
});
export type ChunkLogprob = z.infer<typeof logprobSchema>;

const tokenSchema = logprobSchema.extend({ top_logprobs: z.array(logprobSchema).optional() });
export type ChunkToken = z.infer<typeof tokenSchema>;

const deltaSchema = z.object({
  content: z.string().nullish(),
  reasoning_content: z.string().nullish(),
  tool_calls: z
    .array(
      z.object({
        index: z.int().min(0).optional(),
        id: z.string().optional(),
        function: z.object({ name: z.string().optional(), arguments: z.string().optional() }).optional(),
      }),
    )
    .optional(),
});
export type ChunkDelta = z.infer<typeof deltaSchema>;

/** The parts that we use of a chunk from llama.cpp's server, for a chat or a raw completion. */
const completionChunkSchema = z.object({
  choices: z
    .array(
      z.object({
        text: z.string().optional(),
        delta: deltaSchema.optional(),
        finish_reason: z.string().nullish(),
        logprobs: z.object({ content: z.array(tokenSchema).nullish() }).nullish(),
      }),
    )
    .optional(),
  usage: z
    .object({
      prompt_tokens: z.int().min(0),
      completion_tokens: z.int().min(0),
      prompt_tokens_details: z.object({ cached_tokens: z.int().min(0) }).optional(),
    })
    .nullish(),
  /** In the last chunk, or with every token when requested. */
  timings: z
    .object({
      prompt_ms: z.number(),
      predicted_ms: z.number(),
      predicted_n: z.int().min(0).optional(),
      cache_n: z.int().min(0).optional(),
      /** Only where there were guesses. */
      draft_n: z.int().min(0).optional(),
      draft_n_accepted: z.int().min(0).optional(),
    })
    .optional(),
  prompt_progress: z
    .object({
      processed: z.int().min(0),
      total: z.int().min(0),
      cache: z.int().min(0).optional(),
      time_ms: z.number().min(0).optional(),
    })
    .optional(),
  /** Only in verbose answers. */
  __verbose: z
    .object({
      stopping_word: z.string().optional(),
      prompt: z.string().optional(),
      id_slot: z.int().optional(),
      tokens_cached: z.int().optional(),
      truncated: z.boolean().optional(),
    })
    .optional(),
});
export type CompletionChunk = z.infer<typeof completionChunkSchema>;

/** A result is one chunk or an array of chunks. */
export const completionResultSchema = z
  .union([z.array(completionChunkSchema), completionChunkSchema])
  .transform((result) => (Array.isArray(result) ? result : [result]));
