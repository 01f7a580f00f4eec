import { z } from "zod";
import type { ServiceError } from "../../errors/service-error.ts";
import type { RenderedError } from "../../http/dialect.ts";
import { NDJSON_TYPE, type StreamFormat } from "../../http/streaming/stream-response.ts";

/** The whole error body: the statuses tell the kinds apart. */
export const ollamaErrorSchema = z
  .object({ error: z.string().describe("For people; clients match the HTTP status.") })
  .meta({ id: "OllamaError" });

/** By the field that asked for it, the words in which clients look for a missing ability. */
const ABILITIES: Readonly<Record<string, string>> = {
  tools: "tools",
  think: "thinking",
  images: "vision",
  suffix: "insert",
};

export function renderOllamaError(error: ServiceError): RenderedError {
  return { status: error.status, body: ollamaErrorBody(error) };
}

/** One JSON object a line; a stream that fails ends with an error object. */
export const ollamaLines: StreamFormat = {
  contentType: NDJSON_TYPE,
  errorFrame: (error) => line(ollamaErrorBody(error)),
};

export function line(value: object): string {
  return `${JSON.stringify(value)}\n`;
}

function ollamaErrorBody(error: ServiceError): z.output<typeof ollamaErrorSchema> {
  const ability = error.code === "unsupported_feature" ? ABILITIES[error.param ?? ""] : undefined;
  return {
    error: ability === undefined ? error.message : `model does not support ${ability}: ${error.message}`,
  };
}
