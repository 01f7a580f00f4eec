import { z } from "zod";
import type { ServiceError } from "../../errors/service-error.ts";
import type { RenderedError } from "../../http/dialect.ts";
import { sseData } from "../../http/streaming/sse-frame.ts";
import { SSE_TYPE, type StreamFormat } from "../../http/streaming/stream-response.ts";

/**
 * The error body of the chat-completions API. Its `type` is one of the interface specification's, since all
 * routes share them; clients choose their error class by the status and read `code`.
 */
export const openaiErrorSchema = z
  .object({
    error: z.object({
      message: z.string().describe("For people; may change."),
      type: z.string().describe("One of the error types of the daemon."),
      param: z.string().nullable().describe("Path of the field at fault."),
      code: z.string().describe("For programs; see docs/errors.md."),
    }),
  })
  .meta({ id: "OpenAIError" });

function openaiErrorBody(error: ServiceError): z.output<typeof openaiErrorSchema> {
  return {
    error: { message: error.message, type: error.type, param: error.param ?? null, code: error.code },
  };
}

export function renderOpenaiError(error: ServiceError): RenderedError {
  return {
    status: error.status,
    body: openaiErrorBody(error),
    // The official clients try 409, 429 and 5xx again unless they are told not to.
    ...(!error.retryable && { headers: { "x-should-retry": "false" } }),
  };
}

/** Unnamed events: clients take another shape from named ones. */
export const openaiEvents: StreamFormat = {
  contentType: SSE_TYPE,
  heartbeat: ": keep-alive\n\n",
  errorFrame: (error) => sseData(openaiErrorBody(error)),
};

export const STREAM_END = "data: [DONE]\n\n";
