import { z } from "zod";
import { ServiceError } from "../../errors/service-error.ts";
import { isInternal, NO_PLAIN_REASON, OUT_OF_MEMORY, plainReason, WASM_TRAP } from "./plain-reason.ts";
import { templateFailure, templateTooDeep } from "./template-failure.ts";
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

/** How llama.cpp passes on what was thrown while it chose a token. */
const EXCEPTION = "got exception: ";

/** What it throws when the grammar takes no token of the vocabulary; what follows is the one that it tried. */
const NO_TOKEN_FITS = `${EXCEPTION}Unexpected empty grammar stack`;

/** Of a grammar that it cannot read, llama.cpp's server says no more. */
const BAD_GRAMMAR = "Failed to initialize samplers";

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
  if (message.startsWith(NO_TOKEN_FITS)) {
    return new ServiceError(
      "inference_failed",
      "The answer cannot go on: no token of the model fits the grammar or schema at this point. " +
        "Try again, or allow what the model can write.",
      { cause: new Error(message) },
    );
  }
  if (message.startsWith(EXCEPTION)) return unreadableAnswer(new Error(message));
  if (message.startsWith(BAD_GRAMMAR)) {
    return new ServiceError(
      "invalid_parameter",
      "The grammar or schema cannot be used: it has a mistake, a rule that begins with itself, more than 2,000 " +
        "repetitions, or is nested too deep.",
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
      return failed(message);
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
  const { message } = error;
  const ofTemplate = templateFailure(message, "request");
  if (ofTemplate) return ofTemplate;
  if (OUT_OF_MEMORY.test(message)) return outOfMemory(error);
  const reason = firstLine(message);
  const why = isInternal(reason) ? "llama.cpp cannot read it." : reason;
  return new ServiceError("invalid_parameter", `The model refuses the request: ${why}`, { cause: error });
}

/** What is thrown later, while results are read: it may quote the answer, so that no client gets to see it. */
export function fromCallError(error: unknown): unknown {
  if (!(error instanceof EngineCallError)) return error;
  return OUT_OF_MEMORY.test(error.message) ? outOfMemory(error) : unreadableAnswer(error);
}

/** The model wrote no valid answer: no text, or not in the requested form. */
export function unreadableAnswer(cause?: Error): ServiceError {
  return new ServiceError(
    "inference_failed",
    "The model's answer cannot be read: try again, or with a lower temperature.",
    { cause },
  );
}

/** @param reason in llama.cpp's words */
function failed(reason: string): ServiceError {
  const why = isInternal(reason) ? "llama.cpp cannot go on with it." : reason;
  return new ServiceError("inference_failed", `The model failed on this request: ${why}`);
}

function outOfMemory(cause: unknown): ServiceError {
  return new ServiceError(
    "insufficient_memory",
    "The request needs more memory than the model was given: make it shorter, or load the model with a larger context.",
    { cause },
  );
}

/** Lines by which llama.cpp says that the file is at fault, not the machine. */
const DAMAGED_FILE =
  /magic|gguf|corrupted|incomplete|file bounds|unknown model architecture|missing tensor|wrong number of tensors|key not found|invalid|unsupported|tensor '|failed to read|unexpectedly reached end of file|clip|mmproj|lora|n_embd|vocab|split|GGML_ASSERT|std::|length_error|bad_array/i;

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
  const cause = error;
  if (!isOurs)
    return new ServiceError("model_load_failed", `The model could not be loaded: ${reason}`, { cause });
  const ofTemplate = templateFailure(text, "load") ?? templateTooDeep(text);
  if (ofTemplate) return ofTemplate;
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
    const why = isInternal(reason) && !GPU_FAILURE.test(reason) ? NO_PLAIN_REASON : reason;
    return new ServiceError("model_load_failed", `The model could not be loaded: ${why}`, { cause });
  }
  return new ServiceError("invalid_model_file", `The model file cannot be used: ${plainReason(text)}.`, {
    cause,
  });
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? text;
}
