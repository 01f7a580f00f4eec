import { z } from "zod";
import { type Fetch, jsonLines, post, request } from "../daemon-api.ts";
import type { AnswerSummary, ChatMessage } from "./conversation.ts";
import { answerTokenSchema } from "../../api/wire/native.ts";

/** Minimum time between two updates of a growing answer. */
const RENDER_INTERVAL_MS = 33;

interface AnswerReader {
  readonly signal: AbortSignal;
  /** Called with the answer so far. */
  readonly onChange: (answer: Partial<ChatMessage>) => void;
  /** @param share of the prompt that was processed, 0 to 1 */
  readonly onPrompt: (share: number) => void;
}

/**
 * Sends a chat request and reads the streamed answer.
 * @param initial - the answer to continue, or an empty one
 * @throws Error with a message for the user, DaemonUnreachable, or the reason of the abort
 */
export async function readAnswer(
  body: object,
  send: Fetch,
  initial: Pick<ChatMessage, "content" | "thinking" | "tokens">,
  { signal, onChange, onPrompt }: AnswerReader,
): Promise<void> {
  const sentAt = performance.now();
  let firstMs: number | undefined;
  let renderedAt = 0;
  const { content, thinking, tokens } = initial;
  let answer: Partial<ChatMessage> & { content: string } = {
    content,
    ...(thinking !== undefined && { thinking }),
    ...(tokens && { tokens }),
  };
  const render = (): void => {
    renderedAt = performance.now();
    onChange(answer);
  };
  const response = await request("/api/chat", post(body, signal), send);
  try {
    for await (const json of jsonLines(response)) {
      const line = lineSchema.parse(json);
      if (line.error) throw new Error(line.error.message);
      if (line.prompt_progress) onPrompt(line.prompt_progress.processed / line.prompt_progress.total);
      const next = withLine(answer, line);
      if (next !== answer) firstMs ??= performance.now() - sentAt;
      answer = next;
      if (line.done) answer = { ...answer, summary: summaryOf(line, firstMs ?? performance.now() - sentAt) };
      if (performance.now() - renderedAt >= RENDER_INTERVAL_MS) render();
    }
  } finally {
    render();
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
