import { z } from "zod";
import type {
  AnsweredLine,
  BatchFormat,
  BatchUsage,
  InputProblem,
  LineRequest,
  ReadLine,
} from "../../../batches/batch.ts";
import { openaiErrorBody } from "../openai-error.ts";

/** Name of the format in the store. */
export const OPENAI_BATCHES = "openai";

/** Paths that batches may be for. */
export const OPENAI_ENDPOINTS = [
  "/v1/chat/completions",
  "/v1/completions",
  "/v1/embeddings",
  "/v1/responses",
] as const;

/** Longest custom id. */
const MAX_CUSTOM_ID = 512;

const lineSchema = z.object({
  custom_id: z.string().min(1).max(MAX_CUSTOM_ID),
  method: z.literal("POST"),
  url: z.string(),
  body: z.looseObject({
    model: z.string().nullish(),
    stream: z.boolean().nullish(),
  }),
});

const tokens = z.number().default(0);
const details = z.object({ cached_tokens: tokens, reasoning_tokens: tokens }).partial().nullish();

/** Of an answer of any of the endpoints. */
const usageSchema = z.object({
  usage: z
    .object({
      prompt_tokens: tokens,
      input_tokens: tokens,
      completion_tokens: tokens,
      output_tokens: tokens,
      prompt_tokens_details: details,
      input_tokens_details: details,
      completion_tokens_details: details,
      output_tokens_details: details,
    })
    .nullish(),
});

/** What became of a line that was not run. */
const NOT_RUN: Readonly<Record<string, { readonly code: string; readonly message: string }>> = {
  expired: {
    code: "batch_expired",
    message: "This request could not be executed before the completion window expired.",
  },
  cancelled: {
    code: "batch_cancelled",
    message: "This request was not executed because the batch was cancelled.",
  },
};

/** The lines of /v1/batches. */
export const openaiBatchFormat: BatchFormat = {
  endpoints: OPENAI_ENDPOINTS,
  separatesErrors: true,
  read: readLine,
  request: (value): LineRequest => {
    const { url, body } = lineSchema.parse(value);
    return { path: url, body: JSON.stringify(body) };
  },
  error: (error) => JSON.stringify(openaiErrorBody(error)),
  usage: readUsage,
  write: writeLine,
};

function readLine(value: unknown, endpoint: string): ReadLine | Omit<InputProblem, "line"> {
  const result = lineSchema.safeParse(value);
  if (!result.success) return explain(value);
  const { custom_id: customId, url, body } = result.data;
  if (url !== endpoint) {
    const message = `The url "${url.slice(0, 100)}" is not the endpoint of the batch, ${endpoint}.`;
    return { code: "invalid_url", message, param: "url" };
  }
  if (body.stream === true) {
    const message = "Answers of batches are not streamed; leave stream out.";
    return { code: "invalid_request", message, param: "body.stream" };
  }
  return { customId, model: body.model ?? "", beginning: beginningOf(body) };
}

/** What is wrong with a line, in the API's codes. */
function explain(value: unknown): Omit<InputProblem, "line"> {
  const line: { readonly [field: string]: unknown } | undefined = z.looseObject({}).safeParse(value).data;
  if (!line) return { code: "invalid_json_line", message: "This line is not a JSON object.", param: null };
  const { custom_id: id, method, url, body } = line;
  if (typeof id !== "string" || id === "" || id.length > MAX_CUSTOM_ID) {
    const message = `custom_id must be a text of 1 to ${MAX_CUSTOM_ID} characters.`;
    return {
      code: id === undefined ? "missing_required_parameter" : "invalid_custom_id",
      message,
      param: "custom_id",
    };
  }
  if (method !== "POST")
    return { code: "invalid_method", message: 'method must be "POST".', param: "method" };
  if (typeof url !== "string")
    return { code: "missing_required_parameter", message: "url must be a text.", param: "url" };
  if (typeof body !== "object" || body === null || Array.isArray(body))
    return { code: "missing_required_parameter", message: "body must be an object.", param: "body" };
  return {
    code: "invalid_request",
    message: "body.model must be a text, and body.stream, if there, true or false.",
    param: "body",
  };
}

/** What the model reads first, piece by piece. */
function beginningOf(body: Readonly<Record<string, unknown>>): string[] {
  const { instructions, tools, messages, prompt, input } = body;
  const turns: readonly unknown[] = Array.isArray(messages) ? messages : [messages ?? prompt ?? input];
  return [instructions, tools, ...turns].flatMap((part) => (part == null ? [] : [JSON.stringify(part)]));
}

function readUsage(body: unknown): BatchUsage {
  const { usage } = usageSchema.safeParse(body).data ?? {};
  const input = usage?.prompt_tokens_details ?? usage?.input_tokens_details;
  const output = usage?.completion_tokens_details ?? usage?.output_tokens_details;
  return {
    inputTokens: usage?.prompt_tokens || usage?.input_tokens || 0,
    cachedTokens: input?.cached_tokens ?? 0,
    outputTokens: usage?.completion_tokens || usage?.output_tokens || 0,
    reasoningTokens: output?.reasoning_tokens ?? 0,
  };
}

/** The answer's body stays as the route wrote it, byte for byte. */
function writeLine({ customId, outcome, answer }: AnsweredLine): string {
  const id = JSON.stringify(answer?.requestId ?? `batch_req_${crypto.randomUUID().replaceAll("-", "")}`);
  const custom = JSON.stringify(customId);
  if (!answer) {
    const error = JSON.stringify(NOT_RUN[outcome] ?? null);
    return `{"id":${id},"custom_id":${custom},"response":null,"error":${error}}`;
  }
  const response = `{"status_code":${answer.status},"request_id":${id},"body":${answer.body}}`;
  return `{"id":${id},"custom_id":${custom},"response":${response},"error":null}`;
}
