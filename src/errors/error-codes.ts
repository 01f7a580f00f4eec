/** Error types of the native API. */
export const ERROR_TYPES = [
  "invalid_request",
  "not_found",
  "model_error",
  "conflict",
  "internal_error",
  "overloaded",
] as const;
export type ErrorType = (typeof ERROR_TYPES)[number];

interface ErrorDefinition {
  readonly type: ErrorType;
  /** HTTP status code. */
  readonly status: number;
  /** True if the same request may succeed later without changes. */
  readonly retryable: boolean;
  /** One sentence for the documentation. */
  readonly meaning: string;
}

/** Defines codes of one type and status by their meanings. */
function define<Code extends string>(
  type: ErrorType,
  status: number,
  retryable: boolean,
  meanings: Readonly<Record<Code, string>>,
): Readonly<Record<Code, ErrorDefinition>> {
  const entries = Object.entries<string>(meanings).map(([code, meaning]) => [
    code,
    { type, status, retryable, meaning },
  ]);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- made of these codes
  return Object.fromEntries(entries) as Record<Code, ErrorDefinition>;
}

/** All error codes of the service; the table in the documentation is generated from this one. */
export const ERROR_CODES = {
  ...define("invalid_request", 400, false, {
    malformed_request: "The request is not valid HTTP.",
    invalid_json: "The request body is not valid JSON, is nested too deep or holds too many values.",
    invalid_parameter: "A field is missing, of a wrong type or out of range.",
    context_length_exceeded: "The prompt does not fit into the model's context.",
    unsupported_feature: "The model cannot do what the request asks for (images, tools, embeddings, …).",
    invalid_modelfile: "The Modelfile has an error; the message names the line.",
    invalid_model_name: "The name is neither an alias, a hub spec nor a path.",
    path_not_allowed: "The path lies outside the folders that the configuration allows.",
    previous_response_not_found: "The response that the request continues is not stored, or no longer.",
  }),
  ...define("invalid_request", 401, false, {
    unauthorized: "An API key is configured and the request has no key or a wrong one.",
  }),
  ...define("invalid_request", 403, false, {
    forbidden_host: "The Host or Origin header is not one the daemon serves.",
    hub_access_denied: "The hub repository is gated or private; HUB_TOKEN is missing or has no access.",
  }),
  ...define("not_found", 404, false, {
    route_not_found: "The endpoint does not exist.",
    response_not_found: "No response with this id is stored, or no longer.",
    file_not_found: "No uploaded or batch file has this id, or no longer.",
    batch_not_found: "No batch has this id, or no longer.",
    model_not_found: "No model has this name.",
    model_not_loaded: "The model is on disk but not loaded.",
    model_file_not_found: "The model file does not exist.",
    hub_repo_not_found: "The repository, revision or file does not exist on the hub.",
    no_gguf_in_repo: "The hub repository has no matching GGUF file.",
    slot_state_not_found: "No saved prompt has this name.",
  }),
  ...define("invalid_request", 405, false, {
    method_not_allowed: "The endpoint exists but not for this method.",
  }),
  ...define("conflict", 409, false, {
    model_already_loaded: "The model is already loaded.",
    model_already_unloaded: "The model is not loaded.",
  }),
  ...define("conflict", 409, true, {
    model_busy: "Another operation on this model is in progress.",
  }),
  ...define("conflict", 409, false, {
    model_exists: "A model with this name already exists.",
    slot_state_mismatch:
      "The saved prompt is damaged, or belongs to another model, other load settings or another version of the engine.",
    batch_conflict: "The batch is over, or is not over yet, or needs the file that is to be deleted.",
  }),
  ...define("invalid_request", 408, true, {
    request_timeout: "The request did not arrive in time.",
  }),
  ...define("invalid_request", 413, false, {
    payload_too_large: "The request body exceeds the configured limit.",
  }),
  ...define("invalid_request", 415, false, {
    unsupported_media_type: "The body must be application/json, and not compressed.",
  }),
  ...define("invalid_request", 431, false, {
    headers_too_large: "The headers of the request are too large.",
  }),
  ...define("overloaded", 429, true, {
    rate_limited: "The configured rate limit is exceeded.",
  }),
  ...define("model_error", 500, true, {
    inference_failed: "The model failed on this request.",
    engine_crashed: "The engine process ended while the request ran.",
    deadline_exceeded: "The request ran past its deadline.",
    quantization_failed: "The process that quantizes ended unexpectedly.",
  }),
  ...define("model_error", 500, false, {
    model_load_failed: "The model could not be loaded.",
  }),
  ...define("model_error", 400, false, {
    invalid_model_file: "The file is damaged, truncated or of an unsupported kind.",
    invalid_template: "The model's chat template is wrong, or exceeds its time or memory limit.",
  }),
  ...define("model_error", 500, false, {
    sandbox_unavailable:
      "A sandbox is required, and the operating system provides none; the message says what to install or allow.",
    insufficient_memory: "The model needs more memory than is available.",
    gpu_unavailable: "The configuration requires a GPU, but no usable GPU was found.",
    insufficient_disk: "The disk does not have enough free space.",
    cache_not_writable:
      "The cache folder is read-only, or closed to this user: what is there can be used, and nothing can be saved.",
  }),
  ...define("model_error", 503, false, {
    batch_store_unavailable:
      "The store of batches is damaged, or in use by another daemon; the message says what has been done about it.",
  }),
  ...define("model_error", 500, true, {
    checksum_mismatch: "A downloaded or pinned file does not have the expected hash.",
  }),
  ...define("model_error", 503, true, {
    download_failed: "A download was interrupted; what has arrived is kept.",
    hub_unreachable: "The model hub does not answer.",
    fleet_unreachable:
      "This machine does not have the model, file, batch or response, and cannot ask the others of its fleet, or cannot delete what they have too: the NATS server is not reachable, has just come back, or runs without JetStream. Or the machine that has the model is starting or stopping, or has just left.",
  }),
  ...define("model_error", 502, false, {
    hub_answer_invalid: "The model hub, or what answers for it, sent an invalid answer.",
  }),
  ...define("overloaded", 503, true, {
    overloaded:
      "All slots are busy and the wait queue is full, all connections are in use, or the bodies of all requests together are too large.",
    resources_exhausted:
      "The system is out of file descriptors, processes or memory; the message says which.",
    model_loading: "The model is being loaded or downloaded.",
    starting: "The daemon is starting.",
    shutting_down: "The daemon is shutting down.",
  }),
  ...define("internal_error", 500, true, {
    internal_error: "An unexpected error in the daemon.",
  }),
};

export type ErrorCode = keyof typeof ERROR_CODES;

export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERROR_CODES, code);
}
