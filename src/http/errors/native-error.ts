import { z } from "zod";
import type { ErrorType } from "../../errors/error-codes.ts";
import type { ServiceError } from "../../errors/service-error.ts";
import { NDJSON_TYPE, type StreamFormat } from "../streaming/stream-response.ts";
import type { RenderedError } from "../dialect.ts";

const ERROR_TYPES = [
  "invalid_request",
  "not_found",
  "model_error",
  "conflict",
  "internal_error",
  "overloaded",
] as const satisfies readonly ErrorType[];

/** The error body of the interface specification, part "Errors". */
export const nativeErrorSchema = z
  .object({
    error: z.object({
      message: z.string().describe("For people; may change."),
      type: z.enum(ERROR_TYPES),
      code: z.string().describe("For programs; see docs/errors.md."),
    }),
  })
  .meta({ id: "Error" });

export function nativeErrorBody(error: ServiceError): z.infer<typeof nativeErrorSchema> {
  return { error: { message: error.message, type: error.type, code: error.code } };
}

export function renderNativeError(error: ServiceError): RenderedError {
  return { status: error.status, body: nativeErrorBody(error) };
}

/** Newline-delimited JSON with an error object as the last line of a stream that fails. */
export const nativeNdjson: StreamFormat = {
  contentType: NDJSON_TYPE,
  errorFrame: (error) => ndjsonLine(nativeErrorBody(error)),
};

export function ndjsonLine(value: object): string {
  return `${JSON.stringify(value)}\n`;
}
