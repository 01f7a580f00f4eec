import { z } from "zod";
import { isRecord } from "../../../json/json-values.ts";
import type {
  AnsweredLine,
  BatchFormat,
  BatchUsage,
  InputProblem,
  LineRequest,
  ParsedLine,
} from "../../../batches/batch.ts";
import { newId } from "../../answer-fields.ts";
import { openaiErrorBody } from "../openai-error.ts";

/** Format name in the batch store. */
export const OPENAI_BATCHES = "openai";

/** Supported paths of a batch's requests. */
export const OPENAI_ENDPOINTS = [
  "/v1/chat/completions",
  "/v1/completions",
  "/v1/embeddings",
  "/v1/responses",
] as const;

/** Maximum length of a custom ID. */
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

/** Usage in the answer of any endpoint. */
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

/** Errors of requests that did not run, by outcome. */
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

/** Batch format of /v1/batches. */
export const openaiBatchFormat: BatchFormat = {
  endpoints: OPENAI_ENDPOINTS,
  separatesErrors: true,
  parseLine: readLine,
  request: (value): LineRequest => {
    const { url, body } = lineSchema.parse(value);
    return { path: url, body: JSON.stringify(body) };
  },
  error: (error) => JSON.stringify(openaiErrorBody(error)),
  usageOf: readUsage,
  formatAnswer: writeLine,
};

function readLine(value: unknown, endpoint: string): ParsedLine | Omit<InputProblem, "line"> {
  const result = lineSchema.safeParse(value);
  if (!result.success) return describeProblem(value);
  const { custom_id: customId, url, body } = result.data;
  if (url !== endpoint) {
    const message = `The url "${url.slice(0, 100)}" is not the endpoint of the batch, ${endpoint}.`;
    return { code: "invalid_url", message, param: "url" };
  }
  if (body.stream === true) {
    const message = "Answers of batches are not streamed; leave stream out.";
    return { code: "invalid_request", message, param: "body.stream" };
  }
  return { customId, model: body.model ?? "", prefix: promptParts(body) };
}

/** Describes the error in an invalid line, with this API's codes. */
function describeProblem(value: unknown): Omit<InputProblem, "line"> {
  const line: { readonly [field: string]: unknown } | undefined = z.looseObject({}).safeParse(value).data;
  if (!line) return { code: "invalid_json_line", message: "This line is not a JSON object.", param: null };
  const { custom_id: id, method, url, body } = line;
  const missing = "missing_required_parameter";
  if (typeof id !== "string" || id === "" || id.length > MAX_CUSTOM_ID) {
    const message = `custom_id must be a string of 1 to ${MAX_CUSTOM_ID} characters.`;
    return { code: id === undefined ? missing : "invalid_custom_id", message, param: "custom_id" };
  }
  if (method !== "POST")
    return { code: "invalid_method", message: 'method must be "POST".', param: "method" };
  if (typeof url !== "string") return { code: missing, message: "url must be a string.", param: "url" };
  if (!isRecord(body)) return { code: missing, message: "body must be an object.", param: "body" };
  const message = "body.model must be a string, and body.stream must be true, false or absent.";
  return { code: "invalid_request", message, param: "body" };
}

/** Returns the parts of the prompt in order, to group requests with a common prefix. */
function promptParts(body: Readonly<Record<string, unknown>>): string[] {
  const { instructions, tools, messages, prompt, input } = body;
  const messageParts: readonly unknown[] = Array.isArray(messages) ? messages : [messages ?? prompt ?? input];
  return [instructions, tools, ...messageParts].flatMap((part) =>
    part == null ? [] : [JSON.stringify(part)],
  );
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

/** Formats a result. The answer's body is copied unchanged. */
function writeLine({ customId, outcome, answer }: AnsweredLine): string {
  const id = JSON.stringify(answer?.requestId ?? newId("batch_req"));
  const custom = JSON.stringify(customId);
  if (!answer) {
    const error = JSON.stringify(NOT_RUN[outcome] ?? null);
    return `{"id":${id},"custom_id":${custom},"response":null,"error":${error}}`;
  }
  const response = `{"status_code":${answer.status},"request_id":${id},"body":${answer.body}}`;
  return `{"id":${id},"custom_id":${custom},"response":${response},"error":null}`;
}
