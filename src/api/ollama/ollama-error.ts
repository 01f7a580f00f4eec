import { z } from "zod";
import type { ServiceError } from "../../errors/service-error.ts";
import { ndjsonLine } from "../../http/errors.ts";
import type { RenderedError } from "../../http/route.ts";
import { NDJSON_TYPE, type StreamFormat } from "../../http/streaming/stream-response.ts";

/** Error body. It has no code, because clients use the HTTP status. */
export const ollamaErrorSchema = z
  .object({ error: z.string().describe("Human-readable; clients use the HTTP status.") })
  .meta({ id: "OllamaError" });

/** Capability names that clients look for in error messages, by request field. */
const CAPABILITIES: Readonly<Record<string, string>> = {
  tools: "tools",
  think: "thinking",
  images: "vision",
  suffix: "insert",
};

export function renderOllamaError(error: ServiceError): RenderedError {
  return { status: error.status, body: ollamaErrorBody(error) };
}

/** Stream format with one JSON object per line; a failed stream ends with an error object. */
export const ollamaLines: StreamFormat = {
  contentType: NDJSON_TYPE,
  errorFrame: (error) => ndjsonLine(ollamaErrorBody(error)),
};

function ollamaErrorBody(error: ServiceError): z.output<typeof ollamaErrorSchema> {
  const capability = error.code === "unsupported_feature" ? CAPABILITIES[error.param ?? ""] : undefined;
  return {
    error:
      capability === undefined ? error.message : `model does not support ${capability}: ${error.message}`,
  };
}
