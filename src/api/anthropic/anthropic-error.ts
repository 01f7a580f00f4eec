import { z } from "zod";
import type { ServiceError } from "../../errors/service-error.ts";
import type { RenderedError } from "../../http/route.ts";
import { SSE_TYPE, sseEvent, type StreamFormat } from "../../http/streaming/stream-response.ts";

/** Error body of the messages API, plus the daemon's own `code`. */
export const anthropicErrorSchema = z
  .object({
    type: z.literal("error"),
    error: z.object({
      type: z.string().describe("Error type of the API, such as invalid_request_error."),
      message: z.string().describe("Human-readable; may change."),
      code: z.string().describe("Error code; see docs/errors.md."),
    }),
    request_id: z.string(),
  })
  .meta({ id: "AnthropicError" });

/** Status for an overloaded server, which this API uses instead of 503. */
const OVERLOADED = 529;

const TYPE_BY_STATUS: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  503: "overloaded_error",
};

/**
 * Returns the error's message. Clients recognize a prompt that is too long by this prefix, and then shorten the chat.
 */
function messageOf({ code, message, contextExcess }: ServiceError): string {
  if (code !== "context_length_exceeded") return message;
  // Tokens are not counted for a prompt that is far too long.
  if (!contextExcess) return `prompt is too long: ${message}`;
  const { promptTokens, contextSize } = contextExcess;
  return `prompt is too long: ${promptTokens} tokens > ${contextSize} maximum. ${message}`;
}

/** Converts an error to this API's body. */
export function anthropicErrorBody(
  error: ServiceError,
  requestId: string,
): z.output<typeof anthropicErrorSchema> {
  const type = TYPE_BY_STATUS[error.status] ?? (error.status < 500 ? "invalid_request_error" : "api_error");
  return {
    type: "error",
    error: { type, message: messageOf(error), code: error.code },
    request_id: requestId,
  };
}

export function renderAnthropicError(error: ServiceError, requestId: string): RenderedError {
  return {
    status: error.status === 503 ? OVERLOADED : error.status,
    body: anthropicErrorBody(error, requestId),
    headers: {
      "request-id": requestId,
      // The official clients retry 409, 429 and 5xx without this header.
      ...(!error.retryable && { "x-should-retry": "false" }),
    },
  };
}

/** Stream format with named events; clients ignore events without a name. */
export const anthropicEvents: StreamFormat = {
  contentType: SSE_TYPE,
  heartbeat: sseEvent("ping", { type: "ping" }),
  errorFrame: (error, requestId) => sseEvent("error", anthropicErrorBody(error, requestId)),
};
