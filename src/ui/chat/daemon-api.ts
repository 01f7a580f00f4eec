import { z } from "zod";

const modelSchema = z.object({
  alias: z.string(),
  state: z.string(),
  parameters: z.number().optional(),
  context_size: z.number().optional(),
  size_bytes: z.number().optional(),
  is_default: z.boolean(),
  purpose: z.string().optional(),
  capabilities: z.looseObject({ vision: z.boolean().optional() }).optional(),
});
export type ListedModel = z.output<typeof modelSchema>;

const errorSchema = z.object({ error: z.object({ message: z.string(), code: z.string().nullish() }) });

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

/** Something that answers like a daemon: the daemon itself, or an engine of this tab. */
export type Fetch = (path: string, init?: RequestInit) => Promise<Response>;

/** An error that the daemon has told. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string | undefined;

  constructor(message: string, status: number, code: string | undefined) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** @throws Error with a message for people when the daemon cannot be reached */
export const askDaemon: Fetch = async (path, init = {}) => {
  try {
    return await fetch(path, init);
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new Error(`The daemon at ${location.host} cannot be reached.`, { cause: error });
  }
};

/** @throws ApiError with what the daemon says */
export async function request(path: string, init?: RequestInit, send: Fetch = askDaemon): Promise<Response> {
  const answer = await send(path, init);
  if (answer.ok) return answer;
  const { error } = errorSchema.safeParse(await answer.json().catch(() => undefined)).data ?? {};
  throw new ApiError(
    error?.message ?? `The daemon answered with status ${answer.status}.`,
    answer.status,
    error?.code ?? undefined,
  );
}

export async function listModels(): Promise<ListedModel[]> {
  const answer = await request("/api/models");
  return z.object({ models: z.array(modelSchema) }).parse(await answer.json()).models;
}

/** A POST request with a body of JSON. */
export function post(body: object, signal?: AbortSignal): RequestInit {
  const headers = { "content-type": "application/json" };
  return { method: "POST", headers, body: JSON.stringify(body), ...(signal && { signal }) };
}

/** The lines of a streamed answer. */
export async function* answerLines(answer: Response): AsyncGenerator<AnswerLine, void, undefined> {
  if (!answer.body) return;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line !== "") yield lineSchema.parse(JSON.parse(line));
  }
}
