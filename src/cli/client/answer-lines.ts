import { z } from "zod";

const summaryFields = {
  done: z.boolean(),
  done_reason: z.string().optional(),
  total_duration_ms: z.number().optional(),
  prompt_tokens: z.number().optional(),
  completion_tokens: z.number().optional(),
  tokens_per_second: z.number().optional(),
};

/** A line of a streamed POST /api/generate, or its whole answer: only what the CLI needs. */
export const generateLineSchema = z.object({
  model: z.string(),
  response: z.string(),
  thinking: z.string().optional(),
  ...summaryFields,
});

/** A line of a streamed POST /api/chat, or its whole answer. */
export const chatLineSchema = z.object({
  model: z.string(),
  message: z.object({ role: z.string(), content: z.string(), thinking: z.string().optional() }),
  ...summaryFields,
});
