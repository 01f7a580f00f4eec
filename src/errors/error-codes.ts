/** Error types of the native API. */
export type ErrorType =
  | "invalid_request"
  | "not_found"
  | "model_error"
  | "conflict"
  | "internal_error"
  | "overloaded";

interface ErrorDefinition {
  readonly type: ErrorType;
  /** HTTP status code. */
  readonly status: number;
  /** True if the same request may succeed later without changes. */
  readonly retryable: boolean;
  /** One sentence for the documentation. */
  readonly meaning: string;
}

const define = (type: ErrorType, status: number, retryable: boolean, meaning: string): ErrorDefinition => ({
  type,
  status,
  retryable,
  meaning,
});

/** All error codes of the service; the table in the documentation is generated from this one. */
export const ERROR_CODES = {
  malformed_request: define("invalid_request", 400, false, "The request is not valid HTTP."),
  invalid_json: define(
    "invalid_request",
    400,
    false,
    "The request body is not valid JSON, is nested too deep or holds too many values.",
  ),
  invalid_parameter: define(
    "invalid_request",
    400,
    false,
    "A field is missing, of a wrong type or out of range.",
  ),
  context_length_exceeded: define(
    "invalid_request",
    400,
    false,
    "The prompt does not fit into the model's context.",
  ),
  unsupported_feature: define(
    "invalid_request",
    400,
    false,
    "The model cannot do what the request asks for (images, tools, embeddings, …).",
  ),
  invalid_modelfile: define(
    "invalid_request",
    400,
    false,
    "The Modelfile has an error; the message names the line.",
  ),
  invalid_model_name: define(
    "invalid_request",
    400,
    false,
    "The name is neither an alias, a hub spec nor a path.",
  ),
  path_not_allowed: define(
    "invalid_request",
    400,
    false,
    "The path lies outside the folders that the configuration allows.",
  ),
  previous_response_not_found: define(
    "invalid_request",
    400,
    false,
    "The response that the request continues is not stored, or no longer.",
  ),
  unauthorized: define(
    "invalid_request",
    401,
    false,
    "An API key is configured and the request has no key or a wrong one.",
  ),
  forbidden_host: define(
    "invalid_request",
    403,
    false,
    "The Host or Origin header is not one the daemon serves.",
  ),
  hub_access_denied: define(
    "invalid_request",
    403,
    false,
    "The hub repository is gated or private; HUB_TOKEN is missing or has no access.",
  ),
  route_not_found: define("not_found", 404, false, "The endpoint does not exist."),
  response_not_found: define("not_found", 404, false, "No response with this id is stored, or no longer."),
  file_not_found: define("not_found", 404, false, "No uploaded or batch file has this id, or no longer."),
  batch_not_found: define("not_found", 404, false, "No batch has this id, or no longer."),
  model_not_found: define("not_found", 404, false, "No model has this name."),
  model_not_loaded: define("not_found", 404, false, "The model is on disk but not loaded."),
  model_file_not_found: define("not_found", 404, false, "The model file does not exist."),
  hub_repo_not_found: define(
    "not_found",
    404,
    false,
    "The repository, revision or file does not exist on the hub.",
  ),
  no_gguf_in_repo: define("not_found", 404, false, "The hub repository has no matching GGUF file."),
  slot_state_not_found: define("not_found", 404, false, "No saved prompt has this name."),
  method_not_allowed: define("invalid_request", 405, false, "The endpoint exists but not for this method."),
  model_already_loaded: define("conflict", 409, false, "The model is already loaded."),
  model_already_unloaded: define("conflict", 409, false, "The model is not loaded."),
  model_busy: define("conflict", 409, true, "Another operation on this model is in progress."),
  model_exists: define("conflict", 409, false, "A model with this name already exists."),
  slot_state_mismatch: define(
    "conflict",
    409,
    false,
    "The saved prompt is damaged, or belongs to another model, other load settings or another version of the engine.",
  ),
  batch_conflict: define(
    "conflict",
    409,
    false,
    "The batch is over, or is not over yet, or needs the file that is to be deleted.",
  ),
  request_timeout: define("invalid_request", 408, true, "The request did not arrive in time."),
  payload_too_large: define("invalid_request", 413, false, "The request body exceeds the configured limit."),
  unsupported_media_type: define(
    "invalid_request",
    415,
    false,
    "The body must be application/json, and not compressed.",
  ),
  headers_too_large: define("invalid_request", 431, false, "The headers of the request are too large."),
  rate_limited: define("overloaded", 429, true, "The configured rate limit is exceeded."),
  inference_failed: define("model_error", 500, true, "The model failed on this request."),
  engine_crashed: define("model_error", 500, true, "The engine process ended while the request ran."),
  deadline_exceeded: define("model_error", 500, true, "The request ran past its deadline."),
  quantization_failed: define("model_error", 500, true, "The process that quantizes ended unexpectedly."),
  model_load_failed: define("model_error", 500, false, "The model could not be loaded."),
  invalid_model_file: define(
    "model_error",
    400,
    false,
    "The file is damaged, truncated or of an unsupported kind.",
  ),
  invalid_template: define(
    "model_error",
    400,
    false,
    "The model's chat template is wrong, or exceeds its time or memory limit.",
  ),
  sandbox_unavailable: define(
    "model_error",
    500,
    false,
    "A sandbox is required, and the operating system provides none; the message says what to install or allow.",
  ),
  insufficient_memory: define("model_error", 500, false, "The model needs more memory than is available."),
  gpu_unavailable: define(
    "model_error",
    500,
    false,
    "The configuration requires a GPU, but no usable GPU was found.",
  ),
  insufficient_disk: define("model_error", 500, false, "The disk does not have enough free space."),
  cache_not_writable: define(
    "model_error",
    500,
    false,
    "The cache folder is read-only, or closed to this user: what is there can be used, and nothing can be saved.",
  ),
  batch_store_unavailable: define(
    "model_error",
    503,
    false,
    "The store of batches is damaged, or in use by another daemon; the message says what has been done about it.",
  ),
  checksum_mismatch: define(
    "model_error",
    500,
    true,
    "A downloaded or pinned file does not have the expected hash.",
  ),
  download_failed: define("model_error", 503, true, "A download was interrupted; what has arrived is kept."),
  hub_unreachable: define("model_error", 503, true, "The model hub does not answer."),
  fleet_unreachable: define(
    "model_error",
    503,
    true,
    "This machine does not have the model, file, batch or response, and cannot ask the others of its fleet, or cannot delete what they have too: the NATS server is not reachable, has just come back, or runs without JetStream. Or the machine that has the model is starting or stopping, or has just left.",
  ),
  hub_answer_invalid: define(
    "model_error",
    502,
    false,
    "The model hub, or what answers for it, sent an invalid answer.",
  ),
  overloaded: define(
    "overloaded",
    503,
    true,
    "All slots are busy and the wait queue is full, all connections are in use, or the bodies of all requests together are too large.",
  ),
  resources_exhausted: define(
    "overloaded",
    503,
    true,
    "The system is out of file descriptors, processes or memory; the message says which.",
  ),
  model_loading: define("overloaded", 503, true, "The model is being loaded or downloaded."),
  starting: define("overloaded", 503, true, "The daemon is starting."),
  shutting_down: define("overloaded", 503, true, "The daemon is shutting down."),
  internal_error: define("internal_error", 500, true, "An unexpected error in the daemon."),
} as const satisfies Record<string, ErrorDefinition>;

export type ErrorCode = keyof typeof ERROR_CODES;

export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERROR_CODES, code);
}
