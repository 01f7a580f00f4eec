import { z } from "zod";
import type { ServiceError } from "../../errors/service-error.ts";
import type { RenderedError } from "../../http/route.ts";
import { SSE_TYPE, sseData, type StreamFormat } from "../../http/streaming/stream-response.ts";

/**
 * Error body of the OpenAI API. Its `type` is one of the daemon's error types, because clients choose their error class
 * by the status and read `code`.
 */
export const openaiErrorSchema = z
  .object({
    error: z.object({
      message: z.string().describe("Human-readable; may change."),
      type: z.string().describe("Error type of the daemon."),
      param: z.string().nullable().describe("Path of the invalid field, such as messages[0].content."),
      code: z.string().describe("Error code; see docs/errors.md."),
    }),
  })
  .meta({ id: "OpenAIError" });

/** Converts an error to this API's body. */
export function openaiErrorBody(error: ServiceError): z.output<typeof openaiErrorSchema> {
  const { message, type, code, param: path } = error;
  const param = path === undefined ? null : bracketIndexes(path);
  const startsWithPath = param !== null && path !== undefined && message.startsWith(`${path}:`);
  return {
    error: { message: startsWithPath ? param + message.slice(path.length) : message, type, param, code },
  };
}

/** Writes list indexes in brackets, as in "tools[0].function.parameters". Keys of logit_bias are no indexes. */
function bracketIndexes(path: string): string {
  return path.startsWith("logit_bias.") ? path : path.replaceAll(/\.(\d+)(?=\.|$)/g, "[$1]");
}

export function renderOpenaiError(error: ServiceError): RenderedError {
  return {
    status: error.status,
    body: openaiErrorBody(error),
    // The official clients retry 409, 429 and 5xx without this header.
    ...(!error.retryable && { headers: { "x-should-retry": "false" } }),
  };
}

/** Stream format with unnamed events; clients expect another format from named ones. */
export const openaiEvents: StreamFormat = {
  contentType: SSE_TYPE,
  heartbeat: ": keep-alive\n\n",
  errorFrame: (error) => sseData(openaiErrorBody(error)),
};

export const STREAM_END = "data: [DONE]\n\n";
