import { z } from "zod";
import { answerTokenSchema } from "../../dialects/native/answer-token.ts";
import { jsonLines } from "../json-lines.ts";

const lineSchema = z.object({
  error: z.object({ message: z.string() }).optional(),
  message: z
    .object({
      content: z.string(),
      thinking: z.string().optional(),
      tool_calls: z
        .array(z.object({ id: z.string(), function: z.object({ name: z.string(), arguments: z.string() }) }))
        .optional(),
    })
    .optional(),
  logprobs: z.array(answerTokenSchema).optional(),
  prompt_progress: z.object({ processed: z.number(), total: z.number() }).optional(),
  done: z.boolean().optional(),
  done_reason: z.string().optional(),
  prompt_tokens: z.number().optional(),
  cached_tokens: z.number().optional(),
  completion_tokens: z.number().optional(),
  tokens_per_second: z.number().optional(),
});
export type AnswerLine = z.output<typeof lineSchema>;

/**
 * The lines of a streamed answer.
 * @throws DaemonAway when the stream is cut
 */
export async function* answerLines(answer: Response): AsyncGenerator<AnswerLine, void, undefined> {
  for await (const line of jsonLines(answer)) yield lineSchema.parse(line);
}
