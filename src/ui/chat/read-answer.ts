import { z } from "zod";
import { answerTokenSchema } from "../../api/native/native-answer-fields.ts";
import { type Fetch, jsonLines, post, request } from "../daemon-api.ts";
import type { AnswerSummary, ChatMessage } from "./conversation.ts";

/** An answer is shown so often while it grows. */
const SHOW_MS = 33;

interface AnswerReader {
  readonly signal: AbortSignal;
  /** Called with all of the answer so far. */
  readonly onChange: (answer: Partial<ChatMessage>) => void;
  /** @param share of the prompt that has been read, 0 to 1 */
  readonly onPrompt: (share: number) => void;
}

/**
 * Asks for an answer and reads it while it comes.
 * @param begun - what the answer goes on from
 * @throws Error with a message for people, DaemonAway, or what aborted it
 */
export async function readAnswer(
  body: object,
  send: Fetch,
  begun: Pick<ChatMessage, "content" | "thinking" | "tokens">,
  { signal, onChange, onPrompt }: AnswerReader,
): Promise<void> {
  const askedAt = performance.now();
  let firstMs: number | undefined;
  let shownAt = 0;
  const { content, thinking, tokens } = begun;
  let answer: Partial<ChatMessage> & { content: string } = {
    content,
    ...(thinking !== undefined && { thinking }),
    ...(tokens && { tokens }),
  };
  const show = (): void => {
    shownAt = performance.now();
    onChange(answer);
  };
  const response = await request("/api/chat", post(body, signal), send);
  try {
    for await (const line of answerLines(response)) {
      if (line.error) throw new Error(line.error.message);
      if (line.prompt_progress) onPrompt(line.prompt_progress.processed / line.prompt_progress.total);
      const next = withLine(answer, line);
      if (next !== answer) firstMs ??= performance.now() - askedAt;
      answer = next;
      if (line.done) answer = { ...answer, summary: summaryOf(line, firstMs ?? performance.now() - askedAt) };
      if (performance.now() - shownAt >= SHOW_MS) show();
    }
  } finally {
    show();
  }
}

function withLine<Answer extends Partial<ChatMessage> & { content: string }>(
  answer: Answer,
  { message, logprobs }: AnswerLine,
): Answer {
  const { content = "", thinking = "", tool_calls: calls = [] } = message ?? {};
  if (content === "" && thinking === "" && calls.length === 0 && !logprobs) return answer;
  return {
    ...answer,
    content: answer.content + content,
    ...(thinking !== "" && { thinking: (answer.thinking ?? "") + thinking }),
    ...(calls.length > 0 && {
      toolCalls: [
        ...(answer.toolCalls ?? []),
        ...calls.map(({ id, function: { name, arguments: text } }) => ({ id, name, arguments: text })),
      ],
    }),
    ...(logprobs && { tokens: [...(answer.tokens ?? []), ...logprobs] }),
  };
}

function summaryOf(line: AnswerLine, firstMs: number): AnswerSummary {
  return {
    promptTokens: line.prompt_tokens ?? 0,
    completionTokens: line.completion_tokens ?? 0,
    firstMs,
    doneReason: line.done_reason ?? "stop",
    ...(line.cached_tokens !== undefined && { cachedTokens: line.cached_tokens }),
    ...(line.tokens_per_second !== undefined && { tokensPerSecond: line.tokens_per_second }),
  };
}

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
type AnswerLine = z.output<typeof lineSchema>;

/**
 * The lines of a streamed answer.
 * @throws DaemonAway when the stream is cut
 */
async function* answerLines(answer: Response): AsyncGenerator<AnswerLine, void, undefined> {
  for await (const line of jsonLines(answer)) yield lineSchema.parse(line);
}
