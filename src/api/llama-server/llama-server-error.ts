import { z } from "zod";
import { ServiceError } from "../../errors/service-error.ts";
import type { RenderedError } from "../../http/route.ts";
import { SSE_TYPE, sseData, type StreamFormat } from "../../http/streaming/stream-response.ts";
import type { Model } from "../../models/model.ts";
import type { Services } from "../services.ts";

export const llamaServerErrorSchema = z
  .object({
    error: z.object({
      code: z.int().describe("The HTTP status."),
      message: z.string().describe("Human-readable; may change."),
      type: z.string().describe("Error type of llama.cpp's server."),
      n_prompt_tokens: z.int().optional().describe("Tokens in a prompt that does not fit in the context."),
      n_ctx: z.int().optional().describe("Context size that it exceeds."),
    }),
  })
  .meta({ id: "LlamaServerError" });

/** llama.cpp's error types by status; other statuses use the type of their class. */
const TYPES: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  501: "not_supported_error",
  503: "unavailable_error",
};

/** llama.cpp's status for a feature that the server or model lacks altogether, unlike an unsupported field. */
const NOT_SUPPORTED = 501;

function statusOf({ code, status, param }: ServiceError): number {
  return code === "unsupported_feature" && param === undefined ? NOT_SUPPORTED : status;
}

function errorBody(error: ServiceError): z.output<typeof llamaServerErrorSchema> {
  const { message, contextExcess: excess } = error;
  const status = statusOf(error);
  const type = excess
    ? "exceed_context_size_error"
    : (TYPES[status] ?? (status < 500 ? "invalid_request_error" : "server_error"));
  return {
    error: {
      code: status,
      message,
      type,
      ...(excess && { n_prompt_tokens: excess.promptTokens, n_ctx: excess.contextSize }),
    },
  };
}

export function renderLlamaServerError(error: ServiceError): RenderedError {
  return { status: statusOf(error), body: errorBody(error) };
}

export const llamaServerEvents: StreamFormat = {
  contentType: SSE_TYPE,
  heartbeat: ":\n\n",
  errorFrame: (error) => sseData(errorBody(error)),
};

/**
 * Returns the model that a request names, or the default model.
 * @throws ServiceError model_not_found
 */
export async function requiredModel(
  models: Services["models"],
  name: string | null | undefined,
): Promise<Model> {
  if (name) return await models.get(name);
  const all = await models.list();
  const model = all.find(({ isDefault }) => isDefault);
  if (model) return model;
  throw new ServiceError("model_not_found", "There is no default model; name one in the field model.", {
    param: "model",
  });
}
