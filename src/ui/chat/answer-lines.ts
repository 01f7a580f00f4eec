import { z } from "zod";
import { jsonLines } from "../json-lines.ts";

const lineSchema = z.object({
  error: z.object({ message: z.string() }).optional(),
  message: z.object({ content: z.string(), thinking: z.string().optional() }).optional(),
  done: z.boolean().optional(),
  done_reason: z.string().optional(),
  prompt_tokens: z.number().optional(),
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
