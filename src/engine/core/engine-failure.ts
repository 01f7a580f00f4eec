import { z } from "zod";
import { ServiceError } from "../../errors/service-error.ts";
import {
  isInternalMessage,
  UNEXPLAINED,
  OUT_OF_MEMORY,
  explainLoadError,
  templateFailure,
  templateTooDeep,
  WASM_TRAP,
} from "./failure-text.ts";
import { EngineCallError, EngineFatalError, ModelLoadError } from "./wllama-session.ts";

/** An error of llama.cpp's server. */
const serverErrorSchema = z
  .object({
    type: z.string().optional(),
    message: z.string().default("The model failed on this request."),
    n_prompt_tokens: z.number().default(0),
    n_ctx: z.number().default(0),
  })
  .catch({ message: "The model failed on this request.", n_prompt_tokens: 0, n_ctx: 0 });

/** A text to embed or rerank exceeds the batch size. llama.cpp reports this as a server error. */
const TOO_LONG_FOR_A_STEP = /input \((\d+) tokens\) is too large.*batch size: (\d+)/;

/** The KV cache is full. llama.cpp sends this error to all requests. */
const CONTEXT_IS_FULL = "Context size has been exceeded.";

/** The text to embed has no tokens. */
const EMPTY_TEXT = "Input content cannot be empty";

/** Prefix of an exception that was thrown while llama.cpp sampled a token. */
const EXCEPTION_PREFIX = "got exception: ";

/** The grammar does not allow any token of the vocabulary. The rest of the message is the rejected token. */
const GRAMMAR_ALLOWS_NO_TOKEN = `${EXCEPTION_PREFIX}Unexpected empty grammar stack`;

/** The only message of llama.cpp's server about an invalid grammar. */
const INVALID_GRAMMAR = "Failed to initialize samplers";

/** Converts an error that llama.cpp's server has returned instead of a result. */
export function fromServerError(data: unknown): ServiceError {
  const { type, message, n_prompt_tokens, n_ctx } = serverErrorSchema.parse(data);
  const tooLong = TOO_LONG_FOR_A_STEP.exec(message);
  if (tooLong) {
    return new ServiceError(
      "context_length_exceeded",
      `The text has ${tooLong[1]} tokens, but this model accepts at most ${tooLong[2]}, its batch size.`,
    );
  }
  if (message === CONTEXT_IS_FULL) {
    return new ServiceError(
      "inference_failed",
      "The model's context, which all requests share, is full: try again, or load the model with a larger context.",
    );
  }
  if (message.startsWith(GRAMMAR_ALLOWS_NO_TOKEN)) {
    return new ServiceError(
      "inference_failed",
      "The answer was stopped, because the grammar or schema does not allow any token of the model at this point, or " +
        "can be read in too many ways: try again, or make it less strict or less ambiguous.",
      { cause: new Error(message) },
    );
  }
  if (message.startsWith(EXCEPTION_PREFIX)) return unreadableAnswer(new Error(message));
  if (message.startsWith(INVALID_GRAMMAR)) {
    return new ServiceError(
      "invalid_parameter",
      "The grammar or schema cannot be used: it is invalid, has a left-recursive rule or more than 2,000 repetitions, " +
        "or is nested too deeply.",
      { cause: new Error(message) },
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
      return inferenceFailed(message);
  }
}

function contextLengthExceeded(promptTokens: number, contextSize: number): ServiceError {
  return new ServiceError(
    "context_length_exceeded",
    `The prompt has ${promptTokens} tokens and exceeds the context window: the maximum context length is ${contextSize} tokens. Shorten it, or load the model with a larger context.`,
    { contextExcess: { promptTokens, contextSize } },
  );
}

/**
 * Converts an exception that llama.cpp has thrown before it accepted a request. The cause is the request: the chat
 * template rejects its messages, or its grammar or JSON schema is invalid. Other errors are returned unchanged.
 */
export function fromRejection(error: unknown): unknown {
  if (!(error instanceof EngineCallError)) return error;
  const { message } = error;
  const templateError = templateFailure(message, "request");
  if (templateError) return templateError;
  if (OUT_OF_MEMORY.test(message)) return outOfMemory(error);
  const reason = firstLine(message);
  if (reason === EMPTY_TEXT) {
    return new ServiceError(
      "invalid_parameter",
      "The model cannot embed an empty text, because its vocabulary adds no tokens to a text; leave the text out.",
      { param: "input", cause: error },
    );
  }
  const why = isInternalMessage(reason) ? "llama.cpp cannot parse it." : reason;
  return new ServiceError("invalid_parameter", `The model rejects the request: ${why}`, { cause: error });
}

/**
 * Converts an exception that llama.cpp has thrown later. Hides its text from clients, because it may quote the answer.
 */
export function fromCallError(error: unknown): unknown {
  if (!(error instanceof EngineCallError)) return error;
  return OUT_OF_MEMORY.test(error.message) ? outOfMemory(error) : unreadableAnswer(error);
}

/** Error for an answer that is not valid UTF-8 or not in the requested format. */
export function unreadableAnswer(cause?: Error): ServiceError {
  return new ServiceError(
    "inference_failed",
    "The model's answer is not valid: try again, or use a lower temperature.",
    { cause },
  );
}

function inferenceFailed(reason: string): ServiceError {
  const why = isInternalMessage(reason) ? "llama.cpp cannot process it." : reason;
  return new ServiceError("inference_failed", `The model failed on this request: ${why}`);
}

function outOfMemory(cause: unknown): ServiceError {
  return new ServiceError(
    "insufficient_memory",
    "The request needs more memory than the model has: make it shorter, or load the model with a larger context.",
    { cause },
  );
}

/** Log lines that show that the file is damaged or unsupported, rather than a problem of the machine. */
const DAMAGED_FILE =
  /magic|gguf|corrupted|incomplete|file bounds|unknown model architecture|missing tensor|wrong number of tensors|key not found|invalid|unsupported|tensor '|failed to read|unexpectedly reached end of file|clip|mmproj|lora|n_embd|vocab|split|GGML_ASSERT|std::|length_error|bad_array/i;

/** Messages of Dawn. They may contain "invalid", but do not concern the file. */
const GPU_FAILURE = /ggml_webgpu/i;

/** wllama's error if the only file is a projector. */
const NO_MODEL_AMONG_FILES = /exactly one out metadata, path_model/;

/** Converts the error of a failed load. */
export function fromLoadFailure(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  const isEngineError = error instanceof ModelLoadError || error instanceof EngineFatalError;
  const lines = (error instanceof Error ? error.message : String(error))
    .split("\n")
    .filter((line) => line !== "");
  const reason = lines[0] ?? "unknown";
  const text = lines.join("\n");
  const cause = error;
  if (!isEngineError)
    return new ServiceError("model_load_failed", `The model could not be loaded: ${reason}`, { cause });
  const templateError = templateFailure(text, "load") ?? templateTooDeep(text);
  if (templateError) return templateError;
  if (OUT_OF_MEMORY.test(text)) {
    return new ServiceError(
      "insufficient_memory",
      `The model does not fit into the engine's memory${GPU_FAILURE.test(reason) ? `: ${reason}` : ""}.`,
      { cause },
    );
  }
  if (NO_MODEL_AMONG_FILES.test(text)) {
    return new ServiceError("invalid_model_file", "The file is a vision projector, not a model.", { cause });
  }
  const isDamaged = DAMAGED_FILE.test(text) || WASM_TRAP.test(text);
  if (GPU_FAILURE.test(reason) || !isDamaged) {
    const why = isInternalMessage(reason) && !GPU_FAILURE.test(reason) ? UNEXPLAINED : reason;
    return new ServiceError("model_load_failed", `The model could not be loaded: ${why}`, { cause });
  }
  return new ServiceError("invalid_model_file", `The model file cannot be used: ${explainLoadError(text)}.`, {
    cause,
  });
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? text;
}
