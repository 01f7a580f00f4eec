import { z } from "zod";
import { ServiceError } from "../../errors/service-error.ts";
import { EngineCallError, EngineFatalError, ModelLoadError } from "./wllama-session.ts";

/** An error as llama.cpp's server words it. */
const serverErrorSchema = z
  .object({
    type: z.string().optional(),
    message: z.string().default("The model failed on this request."),
    n_prompt_tokens: z.number().default(0),
    n_ctx: z.number().default(0),
  })
  .catch({ message: "The model failed on this request.", n_prompt_tokens: 0, n_ctx: 0 });

/** A text that cannot be split is longer than one step; llama.cpp names it a server error. */
const TOO_LONG_FOR_A_STEP = /input \((\d+) tokens\) is too large.*batch size: (\d+)/;

/** What llama.cpp says to all requests when no room is left in the KV cache for the next token of each. */
const CONTEXT_IS_FULL = "Context size has been exceeded.";

/** The error of one request that llama.cpp answered instead of a result. */
export function fromServerError(data: unknown): ServiceError {
  const { type, message, n_prompt_tokens, n_ctx } = serverErrorSchema.parse(data);
  const tooLong = TOO_LONG_FOR_A_STEP.exec(message);
  if (tooLong) {
    return new ServiceError(
      "context_length_exceeded",
      `The text has ${tooLong[1]} tokens, but this model takes at most ${tooLong[2]} at once; ` +
        "its batch size is the limit.",
    );
  }
  if (message === CONTEXT_IS_FULL) {
    return new ServiceError(
      "inference_failed",
      "The model's context, which all requests share, is full: try again, or load it with a larger one.",
    );
  }
  switch (type) {
    case "exceed_context_size_error":
      return contextLengthExceeded(n_prompt_tokens, n_ctx);
    case "invalid_request_error":
      return new ServiceError("invalid_parameter", message);
    case "not_supported_error":
      return new ServiceError("unsupported_feature", message);
    default:
      return new ServiceError("inference_failed", `The model failed on this request: ${message}`);
  }
}

function contextLengthExceeded(promptTokens: number, contextSize: number): ServiceError {
  return new ServiceError(
    "context_length_exceeded",
    `The prompt has ${promptTokens} tokens, which do not fit into the context of ${contextSize} tokens.`,
  );
}

/**
 * What llama.cpp throws while it takes a request on is the request's own fault: a template that refuses the
 * messages, a grammar or JSON schema it cannot read. An {@link EngineFatalError} is passed on.
 */
export function fromRefusal(error: unknown): unknown {
  if (!(error instanceof EngineCallError)) return error;
  return new ServiceError("invalid_parameter", `The model refuses the request: ${firstLine(error.message)}`, {
    cause: error,
  });
}

/** What is thrown later, while results are read. */
export function fromCallError(error: unknown): unknown {
  if (!(error instanceof EngineCallError)) return error;
  return new ServiceError(
    "inference_failed",
    `The model failed on this request: ${firstLine(error.message)}`,
    {
      cause: error,
    },
  );
}

/** Lines by which llama.cpp says that the file is at fault, not the machine. */
const DAMAGED_FILE =
  /magic|gguf|corrupted|incomplete|file bounds|unknown model architecture|missing tensor|wrong number of tensors|key not found|invalid|unsupported|tensor '|failed to read|unexpectedly reached end of file|clip|mmproj|n_embd|vocab|split/i;

const OUT_OF_MEMORY =
  /out of memory|OOM|enlarge memory|bad_alloc|failed to allocate|unable to allocate|Cannot allocate/i;

/** What Dawn has against a call it calls invalid, too; that says nothing about the file. */
const GPU_FAILURE = /ggml_webgpu/i;

/** wllama puts projectors aside, and llama.cpp then misses a model. */
const NO_MODEL_AMONG_FILES = /exactly one out metadata, path_model/;

/** Why loading failed, as the service reports it. */
export function fromLoadFailure(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  const isOurs = error instanceof ModelLoadError || error instanceof EngineFatalError;
  const lines = (error instanceof Error ? error.message : String(error))
    .split("\n")
    .filter((line) => line !== "");
  const reason = lines[0] ?? "unknown";
  const text = lines.join("\n");
  if (isOurs && OUT_OF_MEMORY.test(text)) {
    return new ServiceError(
      "insufficient_memory",
      `The model does not fit into the engine's memory: ${reason}`,
      {
        cause: error,
      },
    );
  }
  if (isOurs && NO_MODEL_AMONG_FILES.test(text)) {
    return new ServiceError("invalid_model_file", "The file is a vision projector, not a model.", {
      cause: error,
    });
  }
  if (isOurs && DAMAGED_FILE.test(text) && !GPU_FAILURE.test(reason)) {
    return new ServiceError("invalid_model_file", `The model file cannot be used: ${reason}`, {
      cause: error,
    });
  }
  return new ServiceError("model_load_failed", `The model could not be loaded: ${reason}`, { cause: error });
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? text;
}
